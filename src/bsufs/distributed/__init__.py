"""Data in blocks on a Dask cluster: the scatter operator and the iterates, never in one place.

Reached only with a Dask collection in hand, so that Dask stays an optional package. One code serves
every scheduler: pure functions of blocks, renewed by `dask.persist` once per iteration; small
things (vectors, sums over blocks) come to the client.
"""
