#!/usr/bin/env bash
# platform.sh NETWORK NODES PER_NODE PER_LEAF UPLINKS DIR: an SMPI platform, its host file, and the same network for `unisono sim`,
# in DIR/platform.xml, DIR/hosts and DIR/network.json. NETWORK: star, crossbar or fattree.
#
# 12.5 GB/s and 1 us between nodes, 2 us through both levels of the fat tree, 20 GB/s and 100 ns inside a node; a core per rank.
# A message costs its sender 200 ns, and its receiver: o of LogGP, which .ci/simgrid gives to SMPI.
set -euo pipefail
network=$1 nodes=$2 per_node=$3 per_leaf=$4 uplinks=$5 dir=$6
case $network in
star) shape='bb_bw="12.5GBps" bb_lat="0ns"' json='"star"' ;;
crossbar) shape='' json='"crossbar"' ;;
fattree)
    shape="topology=\"FAT_TREE\" topo_parameters=\"2;$per_leaf,$((nodes / per_leaf));1,$uplinks;1,1\""
    json="{\"fattree\": {\"nodes_per_leaf\": $per_leaf, \"uplinks\": $uplinks}}" ;;
*) echo "platform.sh: no network $network" >&2; exit 2 ;;
esac
cat >"$dir/platform.xml" <<END
<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<cluster id="c" prefix="node-" suffix="" radical="0-$((nodes - 1))" speed="1Gf" core="$per_node" bw="12.5GBps" lat="500ns"
 loopback_bw="20GBps" loopback_lat="100ns" $shape/>
</platform>
END
for ((node = 0; node < nodes; node++)); do echo "node-$node:$per_node"; done >"$dir/hosts"
cat >"$dir/network.json" <<END
{"topology": $json,
 "node":  {"L": 100,  "os": 200, "or": 200, "g": 0, "G": 0.05},
 "leaf":  {"L": 1000, "os": 200, "or": 200, "g": 0, "G": 0.08},
 "spine": {"L": 2000, "os": 200, "or": 200, "g": 0, "G": 0.08}}
END
