-- From here on the header of a frame may name a branch. The tables stay as they are, but a build that does not know of branches
-- must not touch the ledger: it would commit such batches to main.
SELECT 1;
