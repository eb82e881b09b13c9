#!/bin/sh
# On the disk: set the machine up as any distribution does, run the command, switch off.
# Tools that came along go before those of busybox.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
chmod 1777 /tmp
ln -s /proc/self/fd /dev/fd
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
hostname plimsoll-vm
sh /command
echo $? > /dev/ttyS1
sync
poweroff -f
