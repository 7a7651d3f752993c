# A small-zone ZNS SSD: one zone lives on one die, so that zones are slow and independent.
#
# "ZenFS+": the paper "ZenFS+: Nurturing Performance and Isolation to ZenFS", section II.C and Fig. 3: 2 TB, PCIe 3.0
# x4, and, measured with 192 KB I/O, reads of 490 / 550 / 850 us and writes that peak at 4 ms.
# "prototype": the 96 MB-zone one-die-a-zone SSD as the NVMeVirt emulator has it (its ZNS_PROTOTYPE configuration).
# Where the two disagree, the ZenFS+ latencies decide; "calibrated" numbers are chosen so that the model meets them.
# "SilentZNS": the paper "Eliminating the Hidden Cost of Zone Management in ZNS SSDs" (2025), on SSDs with fixed zones.

name = small-zone

zone_count = 29172            # ZenFS+
zone_size = 72MiB             # ZenFS+
zone_capacity = 72MiB         # ZenFS+ gives no smaller capacity
block_size = 4096             # ZenFS+ gives none; 4 KiB is what ZenFS uses
max_open_zones = 384          # ZenFS+ gives none; as the Lifetime paper's device
max_active_zones = 384        # the same
finish_padding = 72MiB        # SilentZNS: a finish fills up all flash of the zone; nobody measured it on this device
reset_padding = 0             # no source measures it; as the large-zone profile

channels = 8                  # ZenFS+ Fig. 3: zones 8 apart disturb each other a little (550 us)
dies = 32                     # ZenFS+ Fig. 3: zones 32 apart disturb each other a lot (850 us)
mapping = round-robin         # ZenFS+ Fig. 3: both periods are exact

page_size = 64KiB             # prototype: FLASH_PAGE_SIZE, 4 planes of 16 KiB
program_unit = 192KiB         # prototype: one-shot programming of 3 pages (TLC); the I/O size of ZenFS+ Fig. 3
page_read = 60us              # calibrated: 3 x (60 + 82) + 65 = 491 us alone; prototype: 41 us
small_read_size = 4KiB        # prototype
small_read = 25.5us           # prototype
program = 1.95ms              # calibrated: 4 reads a write, 4 ms with two writers on a die; prototype: 1.914 ms
erase = 3ms                   # no source measures it; a usual block erase time of TLC flash
channel_bandwidth = 800MB/s   # prototype; 82 us a page

write_buffer_units = 2        # prototype: two program units a die; reads beside a writer then peak near 4 ms (Fig. 3b)
link_bandwidth = 3.94GB/s     # ZenFS+: PCIe 3.0 x4
read_latency = 48.4us         # calibrated: with 16.6 us for the last page on the link, 65 us a read beside the flash
write_latency = 15.1us        # calibrated: with 49.9 us for 192 KiB on the link, 65 us a write beside the flash
management_latency = 10us     # as the large-zone profile
flush_latency = 10us          # no source measures it; a command that touches no flash
