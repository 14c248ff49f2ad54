"""What compare_peers is made of.

machine     who else uses the cores; programs run pinned, with their cost
builds      the peers, from their packages, and the model in other formats
engines     one measurement of one engine: its command, and how its answer is read
search      the best flags of a peer
rounds      measurements in turns; medians; what counts as disturbed
claims      what must be shown, and the verdict on it
rows        the rows of the table
perplexity  the same windows of the same text through two engines
report      Markdown and JSON
"""
