# The image has Node, the C library and the service: no shell, no package manager, nothing that only builds. Base images by
# digest: docs/containers.md.
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:latest

FROM ${RUNTIME_IMAGE} AS runtime

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json README.md CHANGELOG.md LICENSE ./
COPY bin ./bin
COPY scripts ./scripts
COPY migrations ./migrations
COPY docs ./docs
COPY src ./src
COPY --from=runtime /var/lib/dpkg /base/dpkg
RUN node scripts/build.mjs \
  && node scripts/sbom.mjs --image /base/dpkg dist/sbom.cdx.json \
  && node scripts/service-manifest.mjs \
  && npm prune --omit=dev --ignore-scripts --no-audit --no-fund \
  && node scripts/image-files.mjs \
  && install -d -o node -g node -m 0700 /volumes/data

FROM runtime
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 SPOKE_DATA_DIR=/data LOG_FORMAT=json
# Fewer collections of garbage, for up to 100 MiB more memory under load (docs/performance.md).
ENV NODE_OPTIONS=--max-semi-space-size=64
COPY --from=build /etc/passwd /etc/group /etc/
COPY --from=build /usr/local/bin/node /usr/local/bin/node
WORKDIR /spoke
COPY --from=build /build/package.json /build/README.md /build/CHANGELOG.md /build/LICENSE ./
COPY --from=build /build/bin ./bin
COPY --from=build /build/docs ./docs
COPY --from=build /build/migrations ./migrations
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
# A new volume takes owner and mode from here.
COPY --from=build --chown=1000:1000 /volumes/data /data
USER node
VOLUME /data
EXPOSE 3000
# The service drains on it and ends with 0: give it 75 seconds.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
  CMD ["/usr/local/bin/node", "-e", "fetch(`http://127.0.0.1:${process.env.SPOKE_HEALTH_PORT || process.env.PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/usr/local/bin/node", "bin/spoke.mjs"]
CMD ["serve"]
