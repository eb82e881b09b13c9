#!/bin/busybox sh
# In the initramfs: load modules until there is a disk, then go on there.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in $(cat /modules/order); do
    insmod "/modules/$module.ko" || echo "module $module does not load"
done
tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
mount -t ext4 -o noatime /dev/vda /new || poweroff -f
for place in proc sys dev; do
    mount --move /$place /new/$place
done
exec switch_root /new /sbin/init
