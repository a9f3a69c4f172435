-- From here on the row of an intent stays when it closes: it is open while its frames wait. The table is as it was, but a build
-- that does not know of it would take a closed intent for an open one.
SELECT 1;
