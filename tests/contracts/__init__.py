"""The contracts of all components: each check is written once, for every case of a table."""
