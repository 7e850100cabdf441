"""The contracts of all components: each check is written once, and runs over every case of a table."""
