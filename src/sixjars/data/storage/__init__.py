"""What is kept between runs: encoded examples, features of media files, and their folder."""
