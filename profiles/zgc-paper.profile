# The device of "A New LSM-style Garbage Collection Scheme for ZNS SSDs" (the LSM_ZGC paper), Table 1: a 1 TB prototype
# whose zones spread over the channels (its section 2.2).
#
# The paper publishes no flash times: those of small-zone stand in, with its dies behind every zone.

name = zgc-paper

zone_count = 1024             # Table 1
zone_size = 1GiB              # Table 1
zone_capacity = 1GiB          # Table 1 gives no smaller capacity
block_size = 4096             # section 2: block of 4 KB
max_open_zones = 0            # Table 1 gives none
max_active_zones = 0          # Table 1 gives none
finish_padding = 1GiB         # small-zone: the whole zone; the paper finishes none
reset_padding = 0             # small-zone

channels = 8                  # small-zone
dies = 32                     # small-zone
mapping = interleaved         # section 2.2: a zone is spread into multiple channels

page_size = 64KiB             # small-zone
program_unit = 192KiB         # small-zone
page_read = 60us              # small-zone
small_read_size = 4KiB        # small-zone
small_read = 25.5us           # small-zone
program = 1.95ms              # small-zone
erase = 3ms                   # small-zone
channel_bandwidth = 800MB/s   # small-zone

write_buffer_units = 2        # small-zone
link_bandwidth = 3.94GB/s     # Table 1: PCIe Gen3; four lanes, as small-zone
read_latency = 48.4us         # small-zone
write_latency = 15.1us        # small-zone
management_latency = 10us     # small-zone
flush_latency = 10us          # small-zone
