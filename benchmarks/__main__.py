"""Run every benchmark that needs no data folder; the tables are Markdown."""

from benchmarks import core, files, importing, kmeans, methods, page, prox, shapes, wide

if __name__ == "__main__":
    print("## Before the first answer\n")
    importing.main()
    print("\n## In multiples of a PCA\n")
    shapes.main()
    print("\n## From the file to the answer\n")
    files.main()
    print("\n## Proximal maps\n")
    prox.main()
    print("\n## BSUFS against its rivals")
    core.main()
    print("\n## The compared methods")
    methods.main()
    print("\n## Many restarts of k-means\n")
    kmeans.main()
    print("\n## Many features")
    wide.main()
    print("\n## The report of a wide table\n")
    page.main()
