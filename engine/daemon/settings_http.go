package daemon

import (
	"errors"
	"net/netip"
	"regexp"
	"strings"
)

// maxBasePath limits a base path in bytes.
const maxBasePath = 200

func parseBasePath(c *Config, text string) error {
	if text == off || text == "/" {
		c.HTTPBase = ""
		return nil
	}
	base := strings.TrimSuffix(text, "/")
	if len(base) > maxBasePath || !basePath.MatchString(base) {
		return errors.New("want a path of letters, digits, - and _ such as /kagzi, or off")
	}
	c.HTTPBase = base
	return nil
}

var basePath = regexp.MustCompile(`^(/[A-Za-z0-9_-]+)+$`)

func parseNetwork(text string) (string, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()).String(), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil || network != network.Masked() {
		return "", errors.New("want addresses or networks such as 10.0.0.5 or 10.0.0.0/8, " +
			"separated by commas, or off")
	}
	if network.Bits() == 0 {
		return "", errors.New("want the networks of your proxies: /0 is every address, " +
			"and everybody could say to be anybody")
	}
	return network.String(), nil
}

func parseOnOff(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, text string) error {
		switch text {
		case "on", "true":
			*field(c) = true
		case off, "false":
			*field(c) = false
		default:
			return errors.New("want on or off")
		}
		return nil
	}
}
