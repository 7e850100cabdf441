"""Every recipe that comes with the package: found, counted, told apart, run in little, used."""
