package rest

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/kagzi/kagzi/proto/openapi"
)

// Description serves /openapi.json, the description of the API, and /openapi, the same for people.
// The page loads nothing. Neither tells anything about the server.
func Description() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, r *http.Request) {
		text, err := openapi.GZIP, error(nil)
		w.Header().Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
		} else if text, err = openapi.JSON(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		write(w, http.StatusOK, text)
	})
	mux.HandleFunc("GET /openapi", func(w http.ResponseWriter, _ *http.Request) {
		text, err := page()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "+
			"form-action 'none'; style-src '"+styleHash()+"'")
		header.Set("Referrer-Policy", "no-referrer")
		write(w, http.StatusOK, text)
	})
	return mux
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}
code,dt{font-family:ui-monospace,monospace;font-size:.9em}dt{font-weight:bold;margin-top:.3rem;overflow-wrap:anywhere}
dd{margin-left:1.5rem}h3{margin-bottom:0;overflow-wrap:anywhere}summary{cursor:pointer}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8cf}}`

func styleHash() string {
	sum := sha256.Sum256([]byte(style))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// schema is a part of the description that the page shows.
type schema struct {
	Ref                         string `json:"$ref"`
	Type                        any
	Format                      string
	Description                 string
	Enum                        []string
	Items, AdditionalProperties *schema
	Properties                  map[string]schema
}

// page makes the page, once.
var page = sync.OnceValues(func() ([]byte, error) {
	text, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	var d struct {
		Info  struct{ Title, Version, Description string }
		Tags  []struct{ Name, Description string }
		Paths map[string]map[string]struct {
			OperationID, Description string
			Tags                     []string
			Parameters               []struct {
				Name, In, Description string
				Schema                schema
			}
			RequestBody struct {
				Content map[string]struct{ Schema schema }
			}
			Responses map[string]struct {
				Content map[string]struct{ Schema schema }
			}
		}
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	var out strings.Builder
	say := func(format string, args ...any) {
		for i, arg := range args {
			if text, ok := arg.(string); ok {
				args[i] = html.EscapeString(text)
			}
		}
		fmt.Fprintf(&out, format, args...)
	}
	say(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">`)
	out.WriteString("<title>Kagzi: HTTP API</title><style>" + style + "</style>")
	say(`<h1>%s %s</h1><p>%s <a href="openapi.json">openapi.json</a></p>`,
		d.Info.Title, d.Info.Version, d.Info.Description)
	for _, tag := range d.Tags {
		say("<h2>%s</h2><p>%s</p>", tag.Name, tag.Description)
		for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
			for _, verb := range slices.Sorted(maps.Keys(d.Paths[path])) {
				one := d.Paths[path][verb]
				if one.Tags[0] != tag.Name {
					continue
				}
				say(`<h3 id="%s"><code>%s %s</code></h3><p>%s</p>`, one.OperationID, strings.ToUpper(verb), path, one.Description)
				if len(one.Parameters) > 0 {
					say("<details><summary>Parameters</summary><dl>")
					for _, p := range one.Parameters {
						if p.Name != "" {
							say("<dt>%s</dt><dd>%s, in the %s. %s</dd>", p.Name, p.Schema.name(), p.In, p.Description)
						}
					}
					say("</dl></details>")
				}
				say("<p>")
				for kind, body := range one.RequestBody.Content {
					out.WriteString("Takes " + body.Schema.link(kind) + ". ")
				}
				for kind, body := range one.Responses["200"].Content {
					out.WriteString("Answers " + body.Schema.link(kind) + ".")
				}
				say("</p>")
			}
		}
	}
	say("<h2>Messages</h2>")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		message := d.Components.Schemas[name]
		say(`<h3 id="%s"><code>%s</code></h3><p>%s</p><dl>`, "schema-"+name, name, message.Description)
		for _, field := range slices.Sorted(maps.Keys(message.Properties)) {
			one := message.Properties[field]
			say("<dt>%s</dt><dd>", field)
			out.WriteString(one.link(""))
			say(" %s</dd>", one.Description)
		}
		say("</dl>")
	}
	return []byte(out.String()), nil
})

// name says what kind of value a schema has.
func (s schema) name() string {
	switch {
	case s.Ref != "":
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	case s.Items != nil:
		return "list of " + s.Items.name()
	case s.AdditionalProperties != nil:
		return "map of " + s.AdditionalProperties.name()
	case len(s.Enum) > 0:
		return strings.Join(s.Enum, ", ")
	}
	return cmp.Or(s.Format, fmt.Sprint(s.Type))
}

// link returns the name with a link to the message; kind is the media type, if it is a body.
func (s schema) link(kind string) string {
	text := html.EscapeString(s.name())
	at := s
	for at.Items != nil || at.AdditionalProperties != nil {
		at = *cmp.Or(at.Items, at.AdditionalProperties)
	}
	if at.Ref != "" {
		text = `<a href="#schema-` + html.EscapeString(at.name()) + `">` + text + "</a>"
	}
	if kind != "" {
		text = "<code>" + html.EscapeString(kind) + "</code>, " + text
	}
	return text
}
