// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/registry"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

const (
	// fetchTimeout bounds one download.
	fetchTimeout = 5 * time.Minute
	// largestDownload bounds what is fetched, in bytes.
	largestDownload = 128 << 20
)

// Fetch downloads a chart as a [Fetcher] does that asks through the usual proxy.
func Fetch(ctx context.Context, ch spec.Chart) ([]byte, error) { return Fetcher{}.Fetch(ctx, ch) }

// Fetcher downloads charts. Its zero value is ready to use: it asks through the proxy that the usual
// environment variables name.
type Fetcher struct {
	// Client does the requests; http.DefaultClient when nil.
	Client *http.Client
}

// Fetch downloads a chart's archive from its HTTP or OCI repository. Errors never hold credentials.
func (f Fetcher) Fetch(ctx context.Context, ch spec.Chart) ([]byte, error) {
	if err := complete(ch); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	repository := spec.Value(ch.Repository)
	if strings.HasPrefix(repository, "oci://") {
		return f.pull(ch)
	}
	base, err := url.Parse(strings.TrimRight(repository, "/") + "/")
	if err != nil || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("repository %s is neither http(s):// nor oci://", redact(repository))
	}
	raw, err := f.get(ctx, base.JoinPath("index.yaml"), base, ch)
	if err != nil {
		return nil, fmt.Errorf("reading the repository's index: %w", err)
	}
	place, err := placeOf(raw, base, ch)
	if err != nil {
		return nil, err
	}
	archive, err := f.get(ctx, place, base, ch)
	if err != nil {
		return nil, fmt.Errorf("downloading the archive: %w", err)
	}

	return archive, nil
}

// index holds what is read of a repository's index. Helm's own reader comes with kubectl and kustomize, 174
// packages that every program with the components would compile and link.
type index struct {
	Entries map[string][]struct {
		Version string   `json:"version"`
		URLs    []string `json:"urls"`
	} `json:"entries"`
}

// placeOf looks the chart up in the repository's index.
func placeOf(raw []byte, base *url.URL, ch spec.Chart) (*url.URL, error) {
	var found index
	if err := yaml.Unmarshal(raw, &found); err != nil || found.Entries == nil {
		return nil, errors.New("the repository's index is not one of Helm's")
	}
	for _, entry := range found.Entries[*ch.Name] {
		// Helm takes a version with and without the v for the same.
		if strings.TrimPrefix(entry.Version, "v") != strings.TrimPrefix(*ch.Version, "v") || len(entry.URLs) == 0 {
			continue
		}
		place, err := base.Parse(entry.URLs[0])
		if err != nil {
			return nil, fmt.Errorf("the repository's index has no URL for chart %s %s", *ch.Name, *ch.Version)
		}

		return place, nil
	}

	return nil, fmt.Errorf("the repository has no chart %s %s", *ch.Name, *ch.Version)
}

// get downloads; credentials go to the repository's own host only.
func (f Fetcher) get(ctx context.Context, place, base *url.URL, ch spec.Chart) ([]byte, error) {
	return f.download(ctx, place, func(request *http.Request) {
		if place.Host == base.Host && ch.Username != nil {
			request.SetBasicAuth(*ch.Username, spec.Value(ch.Password).Reveal())
		}
	})
}

// download gets what is at a place.
func (f Fetcher) download(ctx context.Context, place *url.URL, prepare func(*http.Request)) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, place.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", redact(place.String()), err)
	}
	prepare(request)
	response, err := f.client().Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}

		return nil, fmt.Errorf("asking for %s: %w", redact(place.String()), err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", redact(place.String()), response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, largestDownload+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", redact(place.String()), err)
	}
	if len(body) > largestDownload {
		return nil, fmt.Errorf("%s is larger than %d MiB", redact(place.String()), largestDownload>>20)
	}

	return body, nil
}

// client returns the client that does the requests.
func (f Fetcher) client() *http.Client {
	if f.Client == nil {
		return http.DefaultClient
	}

	return f.Client
}

// pull gets the archive from a registry.
func (f Fetcher) pull(ch spec.Chart) ([]byte, error) {
	bounded := *f.client()
	bounded.Timeout = fetchTimeout
	options := []registry.ClientOption{registry.ClientOptWriter(io.Discard), registry.ClientOptHTTPClient(&bounded)}
	if ch.Username != nil {
		options = append(options, registry.ClientOptBasicAuth(*ch.Username, spec.Value(ch.Password).Reveal()))
	}
	client, err := registry.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask the registry: %w", err)
	}
	reference := strings.TrimRight(strings.TrimPrefix(*ch.Repository, "oci://"), "/")
	if !strings.HasSuffix(reference, "/"+*ch.Name) {
		reference += "/" + *ch.Name
	}
	// A tag cannot hold the plus sign of a version.
	reference += ":" + strings.ReplaceAll(*ch.Version, "+", "_")
	result, err := client.Pull(reference, registry.PullOptWithChart(true))
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", reference, err)
	}

	return result.Chart.Data, nil
}
