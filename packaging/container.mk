# The service's container image. The Makefile includes this file.

ENGINE ?= podman
BASE ?= docker.io/library/debian:12-slim
IMAGE := localhost/venue-control

.PHONY: container container-image test-container
container: service-deb container-image ## build the service's container image as an ordinary user (podman; BASE=image)

# BUILDAH_FORMAT makes podman and buildah keep the health check.
container-image:
	@BUILDAH_FORMAT=docker $(ENGINE) build --build-arg BASE=$(BASE) --file packaging/container/Containerfile --tag $(IMAGE):$(VERSION) --tag $(IMAGE):latest dist/service

test-container: $(STAMP) test-service-deb ## build and run the container image as an ordinary user (root; podman)
	@$(BIN)/python -m tests.packaging.container.verify_container $(ARGS)
