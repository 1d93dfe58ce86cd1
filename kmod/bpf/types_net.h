/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * types_net.h - packets, devices, sockets (see kernel_types.h)
 */
#ifndef PEM_TYPES_NET_H
#define PEM_TYPES_NET_H

#include "types_base.h"

/* Only the size of these types matters here. It is an int's. */
enum sk_rst_reason { PEM_SK_RST_REASON };
enum skb_drop_reason { PEM_SKB_DROP_REASON };

/* --- devices and packets --- */

struct net_device {
	char name[16];
};

struct napi_struct {
	struct net_device *dev;
	unsigned int napi_id;
};

struct sk_buff {
	struct net_device *dev;
	unsigned int len;
	u16 protocol;
	unsigned int truesize;
};

struct qdisc_skb_head {
	u32 qlen;
};

struct Qdisc {
	u32 handle;
	struct qdisc_skb_head q;
};

struct Qdisc_ops {
	char id[16];
};

/* --- routes and neighbours --- */

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct flowi4 {
	u32 saddr;
	u32 daddr;
};

struct flowi6 {
	struct in6_addr daddr;
	struct in6_addr saddr;
};

struct fib6_table {
	u32 tb6_id;
};

struct neigh_table {
	int family;
};

struct neighbour {
	struct neigh_table *tbl;
	u8 nud_state;
	struct net_device *dev;
};

/* --- sockets --- */

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct request_sock {
	struct sock_common __req_common;
};

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	struct {
		atomic_t rmem_alloc;
	} sk_backlog;
	int sk_rcvbuf;
	int sk_wmem_queued;
	u16 sk_protocol;
	int sk_err;
};

struct socket {
	struct file *file;
	struct sock *sk;
};

struct sockaddr_un {
	u16 sun_family;
	char sun_path[108];
};

struct unix_address {
	int len; /* of the name, with its family */
	struct sockaddr_un name[1];
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
};

struct proto {
	char name[32];
};

#endif
