"""What a user gets by herself: `new` and `train` on real tables, beside what costs nothing.

    python -m benchmarks.starters FOLDER_WITH_THE_DATA [--only ag_news,sick] [--rows 200,1000,20000]
    python -m benchmarks.starters --table build/starters/rows.jsonl

Each data set is written as one table such as people have, `sixjars new` and `sixjars train` are
called as a user calls them, on two CPU cores, and the run is scored on `dev`, which training never
sees. Beside it, on the same rows: for labels scikit-learn's TF-IDF of words and pairs of words with
logistic regression, trained on all rows of the table; for texts the best of copying the input and
taking the output of the most similar row.

One line of JSON for each is appended to --out, and `--table` puts these lines into
benchmarks/results/starters.yaml, in place of the rows there that are of the same data set and size.
"""
