/**
 * Descriptions of the public API: `/openapi.json` with every schema (`/openapi.full.json` is the same),
 * `/openapi.compact.json` without schemas, and the description of the management interface. None of them has the
 * envelope.
 */
import { createHash } from "node:crypto"
import { gzipSync } from "node:zlib"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { acceptsCoding } from "./ContentCoding.ts"
import { compactDescription, publicDescription } from "./Description.ts"
import { manageDescription } from "./manage/ManageDescription.ts"

/** Base address of the public API, without `/v1`; by default the address of the description. */
export class ApiAddress extends Context.Reference<ApiAddress>()("http/ApiAddress", {
  defaultValue: () => "/"
}) {}

/** An encoded description. It does not change while the process runs. */
interface Description {
  readonly plain: Uint8Array
  readonly gzip: Uint8Array
  readonly hash: string
}

const descriptionOf = (make: () => unknown) =>
  Effect.sync((): Description => {
    const plain = new TextEncoder().encode(JSON.stringify(make()))
    const hash = createHash("sha256").update(plain).digest("base64url").slice(0, 22)
    return { plain, gzip: gzipSync(plain), hash }
  })

/** True when the client's `If-None-Match` has `etag`. A proxy may have marked it as weak. */
const matchesEtag = (given: string | undefined, etag: string) =>
  given !== undefined &&
  (given.trim() === "*" || given.split(",").some((one) => one.trim().replace(/^W\//u, "") === etag))

/** Compressed if the client accepts that, and 304 if it has this version. */
const json = ({ gzip, hash, plain }: Description) =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const compressed = acceptsCoding(headers["accept-encoding"], "gzip")
    const etag = `"${hash}${compressed ? "-gzip" : ""}"`
    const common = { "cache-control": "public, max-age=300", etag, vary: "accept-encoding" }
    if (matchesEtag(headers["if-none-match"], etag)) {
      return HttpServerResponse.empty({ status: 304, headers: common })
    }
    return HttpServerResponse.uint8Array(compressed ? gzip : plain, {
      contentType: "application/json",
      headers: { ...common, ...(compressed ? { "content-encoding": "gzip" } : {}) }
    })
  })

/** Adds the routes. */
export const layer: Layer.Layer<never> = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    const address = yield* ApiAddress
    const full = yield* Effect.cached(descriptionOf(() => publicDescription(address)))
    const compact = yield* Effect.cached(descriptionOf(compactDescription))
    const manage = yield* Effect.cached(descriptionOf(manageDescription))
    yield* router.get("/openapi.json", Effect.flatMap(full, json))
    yield* router.get("/openapi.full.json", Effect.flatMap(full, json))
    yield* router.get("/openapi.compact.json", Effect.flatMap(compact, json))
    yield* router.get("/api/manage/v1/openapi.json", Effect.flatMap(manage, json))
  })
)
