// Package profile reads how to reach a server from kagzi.toml and the environment. The SDK and the
// command line share it.
//
//	[client]                  # for all profiles
//	profile = "prod"          # default profile
//
//	[profile.prod]
//	address = "kagzi.example.com:50051"
//	namespace = "shop"
//	api-key-file = "prod.key" # relative to this file
//	tls-ca = "ca.pem"
//
// The file is the one in KAGZI_CONFIG ("off" for none), else kagzi/kagzi.toml in the directory that
// os.UserConfigDir returns.
package profile

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Built-in defaults.
const (
	DefaultAddress   = "127.0.0.1:50051"
	DefaultNamespace = "default"
)

// Off, as the name of a profile given to Resolve, ignores the environment and the file. As the
// value of KAGZI_PROFILE or KAGZI_CONFIG, it only ignores the file.
const Off = "off"

// Profile describes how to reach a server. Empty fields are not set.
type Profile struct {
	Name      string // table [profile.NAME]; empty if only [client] applies
	Address   string // host:port
	Namespace string

	APIKey     Secret
	APIKeyFile string // file with the API key, instead of APIKey

	TLS           *bool  // nil means on if one of the fields below is set
	TLSCA         string // PEM file of the certificates to trust (the system's)
	TLSCert       string // PEM file of the client's certificate; needs TLSKey
	TLSKey        string
	TLSServerName string // name that the server's certificate must have (the address's host)

	// Sources tells where values come from, by key, such as "api-key-file": "given", "environment
	// KAGZI_ADDRESS", or "file /home/ada/.config/kagzi/kagzi.toml:3". Defaults are left out. It is
	// safe to print.
	Sources map[string]string
	// Warnings are for operators, such as secrets in files that every user can read. Safe to print.
	Warnings []string
}

// Load returns the settings of a profile in the file; [client] supplies those that the profile
// leaves open. An empty name means KAGZI_PROFILE, else the default of [client], else [client]
// alone. Without a file, only a profile that was named is an error.
func Load(name string) (Profile, error) {
	said, name, err := load(name)
	if err != nil {
		return Profile{}, err
	}
	return said.profile(name), nil
}

// Resolve returns the effective settings. The order of precedence is: given, environment variables
// (KAGZI_ and the key in capitals: KAGZI_API_KEY_FILE), the profile (given.Name, else as in Load),
// defaults.
//
// A key and its file count as one setting, and so do a client's certificate and its key: a source
// that sets one of them overrides both. A source that sets something only TLS needs turns TLS on,
// over a "tls = false" of lower precedence.
func Resolve(given Profile) (Profile, error) {
	all, name := given.layer(), ""
	if given.Name != Off {
		file, profile, err := load(given.Name)
		if err != nil {
			return Profile{}, err
		}
		environment, err := fromEnvironment()
		if err != nil {
			return Profile{}, err
		}
		all, name = all.over(environment.over(file)), profile
	}
	p := all.profile(name)
	p.Address, p.Namespace = cmp.Or(p.Address, DefaultAddress), cmp.Or(p.Namespace, DefaultNamespace)
	return p, nil
}

// value is a setting's text and its source.
type value struct{ text, source string }

// layer holds the settings of one source, by key.
type layer map[string]value

// setting describes one key; field is nil for "tls".
type setting struct {
	key   string
	field func(p *Profile) *string
	file  bool   // the value is a file name
	with  string // the other key of a pair that a source sets as a whole
}

var settings = []setting{
	{key: "address", field: func(p *Profile) *string { return &p.Address }},
	{key: "namespace", field: func(p *Profile) *string { return &p.Namespace }},
	{key: "api-key", field: func(p *Profile) *string { return (*string)(&p.APIKey) }, with: "api-key-file"},
	{key: "api-key-file", field: func(p *Profile) *string { return &p.APIKeyFile }, file: true, with: "api-key"},
	{key: "tls"},
	{key: "tls-ca", field: func(p *Profile) *string { return &p.TLSCA }, file: true},
	{key: "tls-client-cert", field: func(p *Profile) *string { return &p.TLSCert }, file: true, with: "tls-client-key"},
	{key: "tls-client-key", field: func(p *Profile) *string { return &p.TLSKey }, file: true, with: "tls-client-cert"},
	{key: "tls-server-name", field: func(p *Profile) *string { return &p.TLSServerName }},
}

// Keys returns the keys that a profile may have, in display order. Flags have the same names;
// Variable returns the environment variables.
func Keys() []string {
	keys := make([]string, len(settings))
	for i, s := range settings {
		keys[i] = s.key
	}
	return keys
}

// Variable returns the environment variable of a key.
func Variable(key string) string {
	return "KAGZI_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// fromEnvironment returns the settings of the environment; empty variables do not count.
func fromEnvironment() (layer, error) {
	said := layer{}
	for _, s := range settings {
		name := Variable(s.key)
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		if _, err := strconv.ParseBool(text); err != nil && s.key == "tls" {
			return nil, fmt.Errorf("%s=%q: want true or false", name, text)
		}
		said[s.key] = value{text, "environment " + name}
	}
	return said, nil
}

// layer returns the settings of a Profile.
func (p Profile) layer() layer {
	said := layer{}
	if p.TLS != nil {
		said["tls"] = value{strconv.FormatBool(*p.TLS), "given"}
	}
	for _, s := range settings {
		if s.field != nil && *s.field(&p) != "" {
			said[s.key] = value{*s.field(&p), "given"}
		}
	}
	return said
}

// over merges two layers; l has precedence.
func (l layer) over(lower layer) layer {
	both := layer{}
	for _, s := range settings {
		v, found := l[s.key]
		if !found && !l.settles(s) {
			v, found = lower[s.key]
		}
		if found {
			both[s.key] = v
		}
	}
	return both
}

// settles reports whether l overrides a setting of a lower layer without setting it: the other key
// of a pair, or tls when l sets something that only TLS needs. Otherwise a global "tls = false"
// would send a key unencrypted to a server whose profile names its CA.
func (l layer) settles(s setting) bool {
	if s.key == "tls" {
		return slices.ContainsFunc(settings, func(other setting) bool {
			_, named := l[other.key]
			return named && strings.HasPrefix(other.key, "tls-")
		})
	}
	_, paired := l[s.with]
	return paired
}

// profile converts a layer to a Profile.
func (l layer) profile(name string) Profile {
	p := Profile{Name: name, Sources: map[string]string{}}
	for _, s := range settings {
		v, found := l[s.key]
		if !found {
			continue
		}
		p.Sources[s.key] = v.source
		if s.field != nil {
			*s.field(&p) = v.text
		} else {
			on, _ := strconv.ParseBool(v.text) // validated before
			p.TLS = &on
		}
	}
	p.Warnings = p.warnings()
	return p
}
