"""A virtual machine that needs neither root nor KVM: a kernel of Debian in QEMU, which emulates the processor, and a
file system in memory with busybox, kernel modules, and what is to run. The tests boot it to test on zoned block devices
(tests/guest), and the lab to measure on them in virtual time."""
