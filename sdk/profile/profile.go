// Package profile is what kagzi.toml and the environment tell a client of Kagzi: where its server
// is, and how to get in. The SDK and the command line share it, so that workers, clients and people
// are told once.
//
//	[client]                  # holds for all
//	profile = "prod"          # where nobody names another
//
//	[profile.prod]
//	address = "kagzi.example.com:50051"
//	namespace = "shop"
//	api-key-file = "prod.key" # names of files are relative to this one
//	tls-ca = "ca.pem"
//
// The file is that of KAGZI_CONFIG ("off" for none), else kagzi/kagzi.toml in the directory that
// os.UserConfigDir names, if it is there.
package profile

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// What holds where nothing else is said.
const (
	DefaultAddress   = "127.0.0.1:50051"
	DefaultNamespace = "default"
)

// Off is the name of no profile. When a caller of Resolve gives it, neither the environment nor a
// file counts; as the value of KAGZI_PROFILE or KAGZI_CONFIG it means that no file is read.
const Off = "off"

// Profile is how to reach a server. Every empty field says nothing.
type Profile struct {
	Name      string // of the table; empty: none but [client]
	Address   string // host:port
	Namespace string

	APIKey     Secret
	APIKeyFile string // that holds the key instead

	TLS           *bool  // nil: it is used when one of the others is set
	TLSCA         string // file of the PEM certificates to trust in place of the system's
	TLSCert       string // file of the client's own PEM certificate, together with TLSKey
	TLSKey        string
	TLSServerName string // that the server's certificate has to have (the address's)

	// Sources says where values come from, by their keys such as "api-key-file": "given",
	// "environment KAGZI_ADDRESS" or, fit for a terminal, "file
	// /home/ada/.config/kagzi/kagzi.toml:3". Those left out are defaults.
	Sources map[string]string
	// Warnings are for people: secrets in files that everybody can read. Fit for a terminal.
	Warnings []string
}

// Load is what the file says in the profile of a name, with [client] for what that leaves open. No
// name means that of KAGZI_PROFILE, else the one that [client] names, else [client] alone. Where
// there is no file, only a profile that was named is an error.
func Load(name string) (Profile, error) {
	said, name, err := load(name)
	if err != nil {
		return Profile{}, err
	}
	return said.profile(name), nil
}

// Resolve is what holds: what the caller says, else the environment (KAGZI_ and the key in
// capitals: KAGZI_API_KEY_FILE), else the profile that the caller, or whatever Load goes by, names,
// else the defaults. A key and the file of a key are one thing, and so are a client's certificate
// and its key: who says one of them says both. And who names what only TLS needs, turns it on over
// a "tls = false" of those after it.
func Resolve(said Profile) (Profile, error) {
	all, name := said.layer(), ""
	if said.Name != Off {
		file, profile, err := load(said.Name)
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

// value is what one place says of a setting.
type value struct{ text, source string }

// layer is what one place says, by key.
type layer map[string]value

// setting is one thing that can be said; field is nil for "tls".
type setting struct {
	key   string
	field func(p *Profile) *string
	file  bool   // it names one
	with  string // the other key of a pair of which a place says both or neither
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

// Keys are those that a profile may hold, in the order of reading. A flag has the same name, and a
// variable is KAGZI_ and the name in capitals.
func Keys() []string {
	keys := make([]string, len(settings))
	for i, s := range settings {
		keys[i] = s.key
	}
	return keys
}

// Variable is the environment variable of a key.
func Variable(key string) string {
	return "KAGZI_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// fromEnvironment is what the environment says; an empty variable says nothing.
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

// layer is what a caller says.
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

// over is what l says, and for the rest what lower does.
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

// settles says whether l says of a setting that it does not hold what lower has for it: of the
// other of a pair, and of tls where it names what only TLS needs. Else a "tls = false" for all
// would send a key in the open to the server whose authority a profile names.
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

// profile is the Profile that says what l does.
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
			on, _ := strconv.ParseBool(v.text) // every place has been found good
			p.TLS = &on
		}
	}
	p.Warnings = p.warnings()
	return p
}
