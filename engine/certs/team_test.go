package certs

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheCertificatesOfATeam(t *testing.T) {
	f, made := team(t, func(t *Team) { t.Clients = []string{"ci", "alice", "ci"} })
	var names []string
	for _, m := range made {
		names = append(names, m.Name)
		if !m.IsMade {
			t.Errorf("%s was there", m.Name)
		}
	}
	if strings.Join(names, " ") != "ca server client-alice client-ci" {
		t.Fatalf("made %v", names)
	}
	ca, server, client := made[0].Leaf, made[1].Leaf, made[2].Leaf
	if !ca.IsCA || !ca.MaxPathLenZero || ca.KeyUsage != x509.KeyUsageCertSign || server.IsCA || client.IsCA {
		t.Errorf("the authority %+v signs more than leaves, or the leaves sign", ca)
	}
	if !ca.NotAfter.Equal(today.Add(authorityLife)) || !server.NotAfter.Equal(today.AddDate(0, 0, 90)) {
		t.Errorf("they hold until %s and %s", ca.NotAfter, server.NotAfter)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	for _, host := range []string{"box.example", "localhost", "127.0.0.1", "::1"} {
		if _, err := server.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: today}); err != nil {
			t.Errorf("at %s: %v", host, err)
		}
	}
	as := func(c *x509.Certificate, use x509.ExtKeyUsage) error {
		_, err := c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: today, KeyUsages: []x509.ExtKeyUsage{use}})
		return err
	}
	if as(client, x509.ExtKeyUsageClientAuth) != nil || as(client, x509.ExtKeyUsageServerAuth) == nil ||
		as(server, x509.ExtKeyUsageClientAuth) == nil {
		t.Error("the server's certificate and a client's can stand in for each other")
	}
	if client.Subject.CommonName != "alice" {
		t.Errorf("the client is %s, want alice", client.Subject)
	}
	if err := f.Check(today); err != nil {
		t.Error(err)
	}
}

// everything returns the contents of a directory.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all[e.Name()] = string(text(t, filepath.Join(dir, e.Name())))
	}
	return all
}

// changed returns the files that differ.
func changed(before, after map[string]string) (names []string) {
	for name, text := range after {
		if before[name] != text {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, is := after[name]; !is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestASecondCallMakesOnlyWhatIsMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	base := Team{Dir: dir, Hosts: []string{"box.example", "10.0.0.7"}, Clients: []string{"ci"}, Days: 90, Now: today}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, step := range []struct {
		name    string
		change  func(*Team)
		before  func(t *testing.T)
		changes string
		says    []string
	}{
		{name: "the first", changes: "ca.crt ca.key client-ci.crt client-ci.key server.crt server.key"},
		{name: "the same"},
		{name: "no hosts", change: func(t *Team) { t.Hosts = nil }},
		{name: "another client", change: func(t *Team) {
			t.Clients = []string{"alice"}
		}, changes: "client-alice.crt client-alice.key"},
		{name: "another host", change: func(t *Team) {
			t.Hosts = []string{"new.example"}
		}, says: []string{"server.crt", "new.example", "--renew"}},
		{name: "renewed", change: func(t *Team) {
			t.Renew, t.Hosts, t.Clients = true, nil, nil
		}, changes: "server.crt server.key"},
		{name: "a client renewed", change: func(t *Team) {
			t.Renew = true
		}, changes: "client-ci.crt client-ci.key server.crt server.key"},
		{name: "cut short before the certificate", before: func(t *testing.T) {
			os.Remove(in("server.crt"))
		}, changes: "server.crt"},
		{name: "cut short within a renewal", before: func(t *testing.T) {
			_, key := signed(t, x509.Certificate{})
			put(t, in("server.key"), key)
		},
			says: []string{"server.key does not belong", "--renew"}},
		{name: "renewed again", change: func(t *Team) {
			t.Renew, t.Hosts = true, nil
		}, changes: "client-ci.crt client-ci.key server.crt server.key"},
		{name: "expired", change: func(t *Team) {
			t.Now = today.AddDate(0, 0, 91)
		}, says: []string{"server.crt", "expired", "--renew"}},
		{name: "the key of a client lost", before: func(t *testing.T) {
			os.Remove(in("client-ci.key"))
		}, says: []string{"client-ci.crt exists without", "move it away"}},
		{name: "without the authority's key, nothing to sign", before: func(t *testing.T) {
			os.Rename(in("ca.key"), in("gone"))
		}, change: func(t *Team) { t.Clients = nil }},
		{name: "without the authority's key", change: func(t *Team) {
			t.Clients = []string{"bob"}
		}, says: []string{"ca.key", "restore it"}},
		{name: "with another authority's key", before: func(t *testing.T) {
			_, key := signed(t, x509.Certificate{})
			put(t, in("ca.key"), key)
		},
			change: func(t *Team) { t.Clients = []string{"bob"} }, says: []string{"ca.key does not belong"}},
		{name: "the authority expired", change: func(t *Team) {
			t.Now = today.Add(authorityLife + 1)
		}, says: []string{"ca.crt", "expired"}},
	} {
		t.Run(step.name, func(t *testing.T) {
			next := base
			if step.change != nil {
				step.change(&next)
			}
			if step.before != nil {
				step.before(t)
			}
			before := map[string]string{}
			if step.name != "the first" {
				before = everything(t, dir)
			}
			_, err := next.Make()
			if (err == nil) != (step.says == nil) || err != nil && !mentions(err, step.says...) {
				t.Fatalf("error %v, want one that says %q", err, step.says)
			}
			if got := strings.Join(changed(before, everything(t, dir)), " "); got != step.changes {
				t.Errorf("changed %q, want %q", got, step.changes)
			}
			if step.says == nil {
				shown, err := Show(in("server.crt"))
				if err != nil || !strings.Contains(strings.Join(shown[0].Hosts, " "),
					"box.example localhost 10.0.0.7") {
					t.Errorf("the server's certificate holds for %v, %v, want the hosts it had", shown, err)
				}
			}
		})
	}
}

func TestALeafLivesNoLongerThanItsAuthority(t *testing.T) {
	_, made := team(t, func(t *Team) { t.Days = MaxDays })
	dir := filepath.Dir(made[0].Cert)
	again, err := Team{Dir: dir, Days: MaxDays, Renew: true, Now: today.AddDate(1, 0, 0)}.Make()
	if err != nil || !again[1].Leaf.NotAfter.Equal(again[0].Leaf.NotAfter) {
		t.Errorf("%v, until %s, want %s", err, again[1].Leaf.NotAfter, again[0].Leaf.NotAfter)
	}
}

func TestInvalidHostsAndClientsAreRefusedAndNothingIsMade(t *testing.T) {
	for _, try := range []Team{
		{Hosts: []string{"box:50051"}, Days: 1},
		{Hosts: []string{""}, Days: 1},
		{Hosts: []string{"a b"}, Days: 1},
		{Hosts: []string{strings.Repeat("a", 254)}, Days: 1},
		{Clients: []string{"../x"}, Days: 1},
		{Clients: []string{".hidden"}, Days: 1},
		{Clients: []string{"a/b"}, Days: 1},
		{Clients: []string{""}, Days: 1},
		{Clients: []string{strings.Repeat("a", 65)}, Days: 1},
		{Days: 0},
		{Days: MaxDays + 1},
	} {
		try.Dir, try.Now = filepath.Join(t.TempDir(), "tls"), today
		if _, err := try.Make(); err == nil {
			t.Errorf("%+v was taken", try)
		}
		if _, err := os.Lstat(try.Dir); err == nil {
			t.Errorf("%+v left a directory", try)
		}
	}
	for _, host := range []string{"box", "*.example.com", "10.0.0.7", "fe80::1", "my_box", "a-b.c"} {
		if !IsHost(host) {
			t.Errorf("%s is refused", host)
		}
	}
}

func TestLinksThatWerePlantedAreNotFollowed(t *testing.T) {
	const precious = "precious"
	for _, renew := range []bool{false, true} {
		for _, name := range []string{"ca.key", "ca.crt", "server.key", "server.crt", "client-ci.key",
			"client-ci.crt"} {
			for _, target := range []string{"there", "not there"} {
				t.Run(fmt.Sprintf("%s to what is %s, renew %v", name, target, renew), func(t *testing.T) {
					outside := filepath.Join(t.TempDir(), "outside")
					if target == "there" {
						put(t, outside, []byte(precious))
					}
					dir := filepath.Join(t.TempDir(), "tls")
					if err := os.Mkdir(dir, 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(outside, filepath.Join(dir, name)); err != nil {
						t.Skip(err)
					}
					_, err := Team{Dir: dir, Days: 1, Clients: []string{"ci"}, Renew: renew, Now: today}.Make()
					if !mentions(err, name, "not a regular file") {
						t.Errorf("error %v, want one that names %s", err, name)
					}
					left, err := os.ReadFile(outside)
					if target == "there" && !bytes.Equal(left, []byte(precious)) || target != "there" && err == nil {
						t.Errorf("what the link leads to holds %q", left)
					}
				})
			}
		}
	}
	real := t.TempDir()
	link := filepath.Join(t.TempDir(), "tls")
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	if _, err := (Team{Dir: link, Days: 1, Now: today}).Make(); !mentions(err, "is a link") {
		t.Errorf("in a directory that is a link: %v", err)
	}
}
