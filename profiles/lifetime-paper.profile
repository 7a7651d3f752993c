# The device of "Efficient Key-Value Data Placement for ZNS SSD" (the Lifetime paper), Table 3: QEMU's emulated ZNS SSD.
# It is a functional emulator, so there is no timing to take over.

name = lifetime-paper

zone_count = 512         # Table 3
zone_size = 16MiB        # Table 3
zone_capacity = 16MiB    # QEMU's default: the same as the size
block_size = 512         # Table 3: sector size
max_open_zones = 384     # Table 3
max_active_zones = 384   # Table 3
finish_padding = 0       # QEMU only notes that the zone is full
reset_padding = 0        # the same

timing = off
