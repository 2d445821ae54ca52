package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// lookupTimeout limits the resolution of a name in --listen or --http.
const lookupTimeout = 5 * time.Second

// resolver returns the addresses of a host.
type resolver func(ctx context.Context, host string) ([]netip.Addr, error)

func systemResolver(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// listenAddress resolves where to listen to a numeric address, so that a name cannot change its
// meaning after it was checked. flag is the setting of text.
func listenAddress(ctx context.Context, flag, text string, resolve resolver) (endpoint, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return endpoint{}, usagef("%s %q: want host:port such as 127.0.0.1:50051", flag, text)
	}
	var candidates []netip.Addr
	if host != "" {
		if candidates, err = addressesOf(ctx, host, resolve); err != nil {
			return endpoint{}, usagef("%s %q: %w", flag, text, err)
		}
	}
	if len(candidates) > 0 {
		host = preferred(candidates).String()
	}
	return endpoint{flag: flag, text: text, address: net.JoinHostPort(host, port), exposed: !allLoopback(candidates)},
		nil
}

func addressesOf(ctx context.Context, host string, resolve resolver) ([]netip.Addr, error) {
	if literal, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{literal}, nil
	}
	found, err := resolve(ctx, host)
	if err == nil && len(found) == 0 {
		err = errors.New("the name has no address")
	}
	return found, err
}

// allLoopback is false for an empty list, which means all addresses of the machine.
func allLoopback(addresses []netip.Addr) bool {
	for _, a := range addresses {
		if !a.Unmap().IsLoopback() {
			return false
		}
	}
	return len(addresses) > 0
}

// preferred returns the first IPv4 address, as net.Listen would, or else the first address.
func preferred(addresses []netip.Addr) netip.Addr {
	for _, a := range addresses {
		if a.Unmap().Is4() {
			return a.Unmap()
		}
	}
	return addresses[0]
}

// listen listens on an address. flag is its setting.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		cause := err
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			cause = op.Err
		}
		return nil, fmt.Errorf("listen on %s: %w; choose another address with %s, where port 0 picks a free one",
			address, cause, flag)
	}
	return l, nil
}

// dialable returns an address for clients on this machine: a server that listens on all addresses
// also listens on loopback.
func dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Unmap().IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
