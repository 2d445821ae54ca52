package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // for the assets
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed assets/page.js
var pageJS []byte

//go:embed assets/page.css
var pageCSS []byte

//go:embed assets/icon.svg
var iconSVG []byte

// asset is a file that never changes under its name.
type asset struct {
	kind        string
	plain, gzip []byte
}

// loadAssets names the assets by their content, and compresses them once.
func (s *server) loadAssets() {
	s.assets = map[string]*asset{}
	all := sha256.New()
	add := func(name, kind string, content []byte) string {
		sum := sha256.Sum256(content)
		all.Write(sum[:])
		ext := path.Ext(name)
		name = strings.TrimSuffix(name, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
		_, _ = w.Write(content)                                    // a buffer takes everything
		_ = w.Close()
		s.assets[name] = &asset{kind: kind, plain: content, gzip: packed.Bytes()}
		return name
	}
	s.script = add("page.js", "text/javascript; charset=utf-8", pageJS)
	s.style = add("page.css", "text/css; charset=utf-8", pageCSS)
	s.icon = add("icon.svg", "image/svg+xml", iconSVG)
	s.build = s.Version + "-" + hex.EncodeToString(all.Sum(nil)[:6])
}

func (s *server) assetURL(name string) string { return s.Base + "/assets/" + name }

func (s *server) serveAsset(w http.ResponseWriter, r *http.Request) {
	a := s.assets[r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Vary", "Accept-Encoding")
	content := a.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		content = a.gzip
	}
	_, _ = w.Write(content) // the browser may have gone
}
