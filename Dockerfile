# Two stages: what builds stays behind. Pin the image to a digest of your own choice where builds must repeat.
FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json README.md CHANGELOG.md LICENSE ./
COPY bin ./bin
COPY scripts ./scripts
COPY migrations ./migrations
COPY docs ./docs
COPY src ./src
RUN node scripts/build.mjs && node scripts/service-manifest.mjs \
  && npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:24-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 SPOKE_DATA_DIR=/data LOG_FORMAT=json
WORKDIR /spoke
COPY --from=build /build/package.json /build/README.md /build/CHANGELOG.md /build/LICENSE ./
COPY --from=build /build/bin ./bin
COPY --from=build /build/docs ./docs
COPY --from=build /build/migrations ./migrations
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
# A new volume takes owner and mode from here.
RUN install -d -o node -g node -m 0700 /data
USER node
VOLUME /data
EXPOSE 3000
# The service drains on it and ends with 0: give it 45 seconds.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.SPOKE_HEALTH_PORT || process.env.PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "bin/spoke.mjs"]
CMD ["serve"]
