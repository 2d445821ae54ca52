package profile

import (
	"crypto/tls"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// Addresses splits a comma-separated list of addresses; spaces around them do not count.
func Addresses(list string) []string {
	addresses := strings.Split(list, ",")
	for i := range addresses {
		addresses[i] = strings.TrimSpace(addresses[i])
	}
	return addresses
}

// Target returns what gRPC dials for an address or a list of them, and the options for that. Of a
// list, gRPC tries one after the other until one answers, from the first on, and again after each
// loss of the connection. With TLS, each server's certificate must be for the host of its address,
// or for the ServerName of the settings.
func Target(list string, settings *tls.Config) (target string, options []grpc.DialOption) {
	addresses := Addresses(list)
	if len(addresses) == 1 {
		return addresses[0], nil
	}
	state := resolver.State{}
	for _, address := range addresses {
		to := resolver.Address{Addr: address, ServerName: address}
		if settings != nil && settings.ServerName != "" {
			to.ServerName = "" // an address's own would take precedence
		}
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{to}})
	}
	builder := severalServers{manual.NewBuilderWithScheme("kagzi"), addresses[0]}
	builder.InitialState(state)
	return "kagzi:///servers", []grpc.DialOption{grpc.WithResolvers(builder)}
}

// severalServers names the first server in the authority of calls, which has to name one.
type severalServers struct {
	*manual.Resolver
	authority string
}

func (s severalServers) OverrideAuthority(resolver.Target) string { return s.authority }

// Loopback says whether traffic to an address, or to each of a list, stays on this machine.
func Loopback(list string) bool {
	for _, address := range Addresses(list) {
		host, _, err := net.SplitHostPort(address)
		here := err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
		if !here && !strings.HasPrefix(address, "unix:") {
			return false
		}
	}
	return true
}
