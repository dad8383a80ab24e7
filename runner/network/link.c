/* A veth pair between two network namespaces, by netlink and ioctl. */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network.h"
#include "sides.h"

static const char device[] = "wherry0"; /* at both ends */

struct request {
    struct nlmsghdr head;
    char rest[512];
};

static struct nlattr *put(struct request *request, unsigned type, const void *data, size_t length)
{
    struct nlattr *attribute = (struct nlattr *)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len));
    attribute->nla_type = (uint16_t)type;
    attribute->nla_len = (uint16_t)(NLA_HDRLEN + length);
    if (length)
        memcpy((char *)attribute + NLA_HDRLEN, data, length);
    request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + NLA_ALIGN(attribute->nla_len);
    return attribute;
}

/* What was put since belongs into it. */
static void enclose(const struct request *request, struct nlattr *attribute)
{
    attribute->nla_len = (uint16_t)((const char *)request + request->head.nlmsg_len - (const char *)attribute);
}

static bool ask(struct request *request)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[1024];
    } reply;
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    const int own = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (own < 0)
        return false;
    const struct sockaddr *to = (const struct sockaddr *)&kernel;
    bool done = sendto(own, request, request->head.nlmsg_len, 0, to, sizeof kernel) >= 0;
    const ssize_t got = done ? recv(own, &reply, sizeof reply, 0) : -1;
    const int failed = errno;
    close(own);
    if (got < (ssize_t)(sizeof reply.head + sizeof reply.error) || reply.head.nlmsg_type != NLMSG_ERROR) {
        errno = got < 0 ? failed : EPROTO;
        return false;
    }
    errno = -reply.error.error;
    return reply.error.error == 0;
}

bool link_make(pid_t other, char failed[SAID])
{
    struct request request = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
                                       .nlmsg_type = RTM_NEWLINK,
                                       .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK}};
    const uint32_t mtu = MTU, pid = (uint32_t)other;
    const struct ifinfomsg end = {.ifi_family = AF_UNSPEC};
    put(&request, IFLA_IFNAME, device, sizeof device);
    put(&request, IFLA_MTU, &mtu, sizeof mtu);
    struct nlattr *info = put(&request, IFLA_LINKINFO, NULL, 0);
    put(&request, IFLA_INFO_KIND, "veth", sizeof "veth");
    struct nlattr *data = put(&request, IFLA_INFO_DATA, NULL, 0);
    struct nlattr *peer = put(&request, VETH_INFO_PEER, &end, sizeof end);
    put(&request, IFLA_IFNAME, device, sizeof device);
    put(&request, IFLA_MTU, &mtu, sizeof mtu);
    put(&request, IFLA_NET_NS_PID, &pid, sizeof pid);
    enclose(&request, peer);
    enclose(&request, data);
    enclose(&request, info);
    if (ask(&request))
        return true;
    snprintf(failed, SAID, "a veth pair cannot be made: %s", strerror(errno));
    return false;
}

static bool without_offload(int by, struct ifreq *device_request)
{
    static const uint32_t commands[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM};
    bool done = true;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        struct ethtool_value value = {.cmd = commands[i], .data = 0};
        device_request->ifr_data = (void *)&value;
        done = done && ioctl(by, SIOCETHTOOL, device_request) == 0;
        device_request->ifr_data = NULL; /* the request outlives the value */
    }
    return done;
}

bool link_up(struct in_addr address, bool offload, char failed[SAID])
{
    struct ifreq own = {0};
    struct sockaddr_in *place = (struct sockaddr_in *)&own.ifr_addr;
    memcpy(own.ifr_name, device, sizeof device);
    const int by = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool done = by >= 0;
    if (done && !offload)
        done = without_offload(by, &own);
    *place = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = address};
    done = done && ioctl(by, SIOCSIFADDR, &own) == 0;
    place->sin_addr.s_addr = htonl(0xffffff00);
    done = done && ioctl(by, SIOCSIFNETMASK, &own) == 0;
    own.ifr_flags = IFF_UP | IFF_RUNNING;
    done = done && ioctl(by, SIOCSIFFLAGS, &own) == 0;
    if (!done)
        snprintf(failed, SAID, "the veth device cannot be set up: %s", strerror(errno));
    if (by >= 0)
        close(by);
    return done;
}
