"""What flows between encoder, bridge, decoder and search, and the contract of each.

`values` and `contracts` need torch; `special` and `limits` do not, so nothing is imported here.
"""
