# A large-zone ZNS SSD, the Western Digital ZN540: every zone spans every die, so that one zone is fast and none is
# independent.
#
# "measured": the raw data of "Performance Characterization of NVMe Flash Devices with Zoned Namespaces (ZNS)" (IEEE
# CLUSTER 2023). "NVMeVirt": its WD_ZN540 configuration. "calibrated": chosen so that the model meets what was measured.
# "ConfZNS++": the raw data of "Exploring I/O Management Performance in ZNS with ConfZNS++" (SYSTOR 2024).

name = large-zone

zone_count = 904              # measured: the device's report
zone_size = 2048MiB           # the same
zone_capacity = 1077MiB       # the same
block_size = 4096             # the same, in its 4 KiB format
max_open_zones = 14           # the same
max_active_zones = 14         # the same
finish_padding = 1077MiB      # measured: a finish takes as long as writing the rest of the zone would; ConfZNS++: it
                              # takes that from writers: four write 995 MB/s beside 236 MB/s of finishes, 1,229 alone
reset_padding = 0             # measured: resetting half a zone takes 12 ms, and padding the rest would take 455 ms

channels = 8                  # NVMeVirt
dies = 32                     # NVMeVirt: 4 a channel
mapping = interleaved         # NVMeVirt: DIES_PER_ZONE is all of them

page_size = 32KiB             # NVMeVirt
program_unit = 96KiB          # NVMeVirt: 3 pages (TLC)
page_read = 58us              # NVMeVirt
small_read_size = 4KiB        # NVMeVirt
small_read = 56us             # calibrated: 1.73 GB/s of random 4 KiB reads at depth 128; NVMeVirt: 50 us
program = 561us               # NVMeVirt; write_bandwidth is what limits
erase = 0us                   # reset_time has what was measured
channel_bandwidth = 450MB/s   # NVMeVirt

write_buffer_units = 10       # NVMeVirt
link_bandwidth = 3.94GB/s     # PCIe 3.0 x4, as the device has
read_latency = 7.9us          # calibrated: a random 4 KiB read takes 74 us
write_latency = 2.5us         # calibrated: a 4 KiB write takes 12.6 us
management_latency = 10us     # measured: 9.6 us an open, 11.0 us a close
flush_latency = 10us          # no source measures it; a command that touches no flash

write_bandwidth = 1.21GB/s    # measured, with 1 or 8 zones; 128 KiB writes then take 106 us
write_cache = 1MiB            # no source measures it; small against every test's run
append = 7.57us               # measured: appends of 4 KiB reach 541 MB/s, whatever the depth
finish_bandwidth = 1.24GB/s   # measured: 908 ms for a nearly empty zone
reset_time = 0%:1.6ms 12.5%:6.5ms 50%:12ms 100%:16ms  # measured
