package deploytest_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// cluster is what a manifest holds, by name.
type cluster struct {
	claims   map[string]*core.PersistentVolumeClaim
	services map[string]*core.Service
	sets     map[string]*apps.StatefulSet
}

// decode reads a manifest; unknown kinds and unknown fields are errors.
func decode(manifest string) (*cluster, error) {
	c := &cluster{
		claims:   make(map[string]*core.PersistentVolumeClaim),
		services: make(map[string]*core.Service),
		sets:     make(map[string]*apps.StatefulSet),
	}
	for i, doc := range strings.Split(manifest, "\n---\n") {
		if err := c.add([]byte(doc)); err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
	}
	return c, nil
}

func (c *cluster) add(doc []byte) error {
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return err
	}
	switch head.APIVersion + " " + head.Kind {
	case "v1 PersistentVolumeClaim":
		return strict(doc, c.claims, func(o *core.PersistentVolumeClaim) string { return o.Name })
	case "v1 Service":
		return strict(doc, c.services, func(o *core.Service) string { return o.Name })
	case "apps/v1 StatefulSet":
		return strict(doc, c.sets, func(o *apps.StatefulSet) string { return o.Name })
	default:
		return fmt.Errorf("unexpected %q %q", head.APIVersion, head.Kind)
	}
}

func strict[T any](doc []byte, into map[string]*T, name func(*T) string) error {
	object := new(T)
	if err := yaml.UnmarshalStrict(doc, object); err != nil {
		return err
	}
	if name(object) == "" || into[name(object)] != nil {
		return fmt.Errorf("name %q is missing or taken", name(object))
	}
	into[name(object)] = object
	return nil
}

func load(t *testing.T) *cluster {
	t.Helper()
	manifest, err := os.ReadFile("../../deploy/weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := decode(string(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDecodingIsStrict(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		"apiVersion: v1\nkind: Service\nmetadata:\n  name: a\nspec:\n  selectors: {}\n",
		"apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: a\n",
		"apiVersion: v1\nkind: Services\nmetadata:\n  name: a\n",
		"apiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: a\nspec:\n  replicas: two\n",
	} {
		if _, err := decode(doc); err == nil {
			t.Errorf("accepted:\n%s", doc)
		}
	}
}

func TestManifestHoldsAJobManagerTwoTaskManagersAndSharedCheckpoints(t *testing.T) {
	t.Parallel()
	c := load(t)
	for name, replicas := range map[string]int32{"weir-jobmanager": 1, "weir-taskmanager": 2} {
		set := c.sets[name]
		if set == nil || set.Spec.Replicas == nil || *set.Spec.Replicas != replicas {
			t.Fatalf("want %d of %s", replicas, name)
		}
	}
	claim := c.claims["weir-checkpoints"]
	if len(c.claims) != 1 || claim == nil || !slices.Equal(claim.Spec.AccessModes, []core.PersistentVolumeAccessMode{core.ReadWriteMany}) {
		t.Errorf("want one ReadWriteMany claim, weir-checkpoints; got %d claims", len(c.claims))
	}
	if len(c.sets) != 2 || len(c.services) != 2 {
		t.Errorf("%d sets and %d services", len(c.sets), len(c.services))
	}
}

func TestReferencesInTheManifestHold(t *testing.T) {
	t.Parallel()
	c := load(t)
	for name, set := range c.sets {
		pod := set.Spec.Template
		for k, v := range set.Spec.Selector.MatchLabels {
			if pod.Labels[k] != v {
				t.Errorf("%s selects %s=%s, which its pods do not have", name, k, v)
			}
		}
		service := c.services[set.Spec.ServiceName]
		if service == nil {
			t.Errorf("%s names the service %q, which does not exist", name, set.Spec.ServiceName)
			continue
		}
		for k, v := range service.Spec.Selector {
			if pod.Labels[k] != v {
				t.Errorf("service %s selects %s=%s, which the pods of %s do not have", service.Name, k, v, name)
			}
		}
		if len(pod.Spec.Containers) != 1 {
			t.Fatalf("%s has %d containers", name, len(pod.Spec.Containers))
		}
		container := pod.Spec.Containers[0]
		checkPorts(t, name, container, service)
		checkVolumes(t, c, set)
		if !slices.ContainsFunc(container.Env, func(e core.EnvVar) bool {
			return e.Name == "POD_IP" && e.ValueFrom.FieldRef.FieldPath == "status.podIP"
		}) {
			t.Errorf("%s does not know its POD_IP", name)
		}
	}
}

// checkPorts checks that services and probes name ports of the container.
func checkPorts(t *testing.T, set string, container core.Container, service *core.Service) {
	t.Helper()
	ports := make(map[string]bool)
	for _, p := range container.Ports {
		ports[p.Name], ports[fmt.Sprint(p.ContainerPort)] = true, true
	}
	for _, p := range service.Spec.Ports {
		if !ports[p.TargetPort.String()] {
			t.Errorf("service %s: no port %q in %s", service.Name, p.TargetPort.String(), set)
		}
	}
	for _, probe := range []*core.Probe{container.ReadinessProbe, container.LivenessProbe} {
		switch {
		case probe == nil:
			t.Errorf("%s lacks a probe", set)
		case probe.GRPC != nil && !ports[fmt.Sprint(probe.GRPC.Port)],
			probe.HTTPGet != nil && !ports[probe.HTTPGet.Port.String()],
			probe.GRPC == nil && probe.HTTPGet == nil:
			t.Errorf("%s: a probe asks at no port of the container", set)
		}
	}
}

// checkVolumes checks that mounts have volumes and volumes have claims, and that
// checkpoints lie at the same path everywhere.
func checkVolumes(t *testing.T, c *cluster, set *apps.StatefulSet) {
	t.Helper()
	volumes := make(map[string]bool)
	for _, v := range set.Spec.VolumeClaimTemplates {
		volumes[v.Name] = true
	}
	for _, v := range set.Spec.Template.Spec.Volumes {
		volumes[v.Name] = true
		if claim := v.PersistentVolumeClaim; claim != nil && c.claims[claim.ClaimName] == nil {
			t.Errorf("%s: no claim %s", set.Name, claim.ClaimName)
		}
	}
	shared := false
	for _, m := range set.Spec.Template.Spec.Containers[0].VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("%s mounts %s, which is no volume", set.Name, m.Name)
		}
		shared = shared || m.Name == "checkpoints" && m.MountPath == "/checkpoints"
	}
	if !shared {
		t.Errorf("%s does not mount the checkpoints at /checkpoints", set.Name)
	}
}

func TestFlagsAgreeWithPortsVolumesAndServices(t *testing.T) {
	t.Parallel()
	c := load(t)
	want := map[string][]string{
		"weir-jobmanager": {"jobmanager", "--listen=0.0.0.0:6123", "--advertise=$(POD_IP):6123", "--metrics-listen=0.0.0.0:7090",
			"--data-dir=/data", "--checkpoint-dir=/checkpoints", "--insecure"},
		"weir-taskmanager": {"taskmanager", "--jobmanager=weir-jobmanager:6123", "--listen=0.0.0.0:7071", "--advertise=$(POD_IP):7071",
			"--metrics-listen=0.0.0.0:7090", "--data-dir=/data", "--insecure"},
	}
	for name, flags := range want {
		container := c.sets[name].Spec.Template.Spec.Containers[0]
		if container.Args[0] != flags[0] {
			t.Errorf("%s runs %q", name, container.Args[0])
		}
		for _, flag := range flags {
			if !slices.Contains(container.Args, flag) {
				t.Errorf("%s lacks %s", name, flag)
			}
		}
		if !slices.ContainsFunc(container.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == "/data" }) {
			t.Errorf("%s mounts nothing at /data", name)
		}
	}
	if p := c.services["weir-jobmanager"].Spec.Ports; p[0].Port != 6123 {
		t.Errorf("the JobManager's service has port %d, TaskManagers call 6123", p[0].Port)
	}
}

func TestImageIsStaticAndRunsAsNobody(t *testing.T) {
	t.Parallel()
	dockerfile, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := string(dockerfile)
	for _, want := range []string{"CGO_ENABLED=0", "\nFROM scratch\n", "\nUSER 65532:65532\n", "daemon.codeID=", "./codeid"} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile lacks %q", want)
		}
	}
	for name, set := range load(t).sets {
		security := set.Spec.Template.Spec.SecurityContext
		if security == nil || security.RunAsUser == nil || *security.RunAsUser != 65532 {
			t.Errorf("%s does not run as the image's user", name)
		}
	}
}
