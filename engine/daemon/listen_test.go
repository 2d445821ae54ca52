package daemon

import (
	"context"
	"errors"
	"net/netip"
	"testing"
)

// names is a resolver with three hosts.
func names(_ context.Context, host string) ([]netip.Addr, error) {
	switch host {
	case "localhost":
		return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, nil
	case "box":
		return []netip.Addr{netip.MustParseAddr("192.168.1.7")}, nil
	case "both":
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1")}, nil
	}
	return nil, errors.New("no such host")
}

func TestWhatOtherMachinesCanReachIsKnown(t *testing.T) {
	for _, try := range []struct {
		listen, address string
		exposed         bool
	}{
		{"127.0.0.1:50051", "127.0.0.1:50051", false},
		{"127.9.9.9:0", "127.9.9.9:0", false},
		{"[::1]:50051", "[::1]:50051", false},
		{"[::ffff:127.0.0.1]:1", "127.0.0.1:1", false},
		{"localhost:50051", "127.0.0.1:50051", false},
		{":50051", ":50051", true},
		{"0.0.0.0:50051", "0.0.0.0:50051", true},
		{"[::]:50051", "[::]:50051", true},
		{"[::ffff:0.0.0.0]:1", "0.0.0.0:1", true},
		{"192.168.1.7:50051", "192.168.1.7:50051", true},
		{"[fe80::1%eth0]:50051", "[fe80::1%eth0]:50051", true},
		{"box:50051", "192.168.1.7:50051", true},
		{"both:50051", "127.0.0.1:50051", true},
	} {
		t.Run(try.listen, func(t *testing.T) {
			e, err := listenAddress(t.Context(), "--listen", try.listen, names)
			if want := (endpoint{flag: "--listen", text: try.listen, address: try.address,
				exposed: try.exposed}); err != nil || e != want {
				t.Errorf("%+v, %v, want %+v", e, err, want)
			}
		})
	}
}

func TestAHostThatIsNotKnownIsAUsageError(t *testing.T) {
	if _, err := listenAddress(t.Context(), "--listen", "nowhere:1", names); err == nil || codeOf(err) != 64 ||
		!mentions(err, "nowhere:1", "no such host") {
		t.Errorf("error %v with code %d, want one that names the host, with 64", err, codeOf(err))
	}
}

func TestClientsOfAServerThatListensEverywhereUseLoopback(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:5": "127.0.0.1:5", "[::]:5": "127.0.0.1:5", "192.168.1.7:5": "192.168.1.7:5", "[::1]:5": "[::1]:5",
	} {
		if got := dialable(address); got != want {
			t.Errorf("client of %s dials %s, want %s", address, got, want)
		}
	}
}
