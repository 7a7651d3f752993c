# The 96 MB-zone SSD that the thesis on parallel zone I/O measures (SK hynix), as the NVMeVirt emulator describes a
# prototype of that kind: one die a zone, twice as many dies a channel as `small-zone`, the same flash.
#
# "thesis": its section 2.2.1. "prototype": NVMeVirt's ZNS_PROTOTYPE configuration. "small-zone": calibrated there, or
# from its sources.

name = small-zone-96

zone_count = 33776            # thesis: prints "34TB" in all, read as 3.4 TB
zone_size = 96MiB             # thesis
zone_capacity = 96MiB         # thesis: the same as the size
block_size = 4096             # the thesis gives none
max_open_zones = 384          # the thesis gives none; as the Lifetime paper's device
max_active_zones = 384        # the same
finish_padding = 96MiB        # small-zone: the whole zone; the prototype writes nothing
reset_padding = 0             # small-zone

channels = 8                  # prototype: NAND_CHANNELS
dies = 128                    # prototype: 16 dies a channel
mapping = round-robin         # prototype: DIES_PER_ZONE 1

page_size = 64KiB             # prototype
program_unit = 192KiB         # prototype
page_read = 60us              # small-zone
small_read_size = 4KiB        # prototype
small_read = 25.5us           # prototype
program = 1.95ms              # small-zone
erase = 3ms                   # small-zone
channel_bandwidth = 800MB/s   # prototype

write_buffer_units = 2        # prototype
link_bandwidth = 3.2GB/s      # prototype: PCIE_BANDWIDTH
read_latency = 48.4us         # small-zone
write_latency = 15.1us        # small-zone
management_latency = 10us     # small-zone
flush_latency = 10us          # small-zone
