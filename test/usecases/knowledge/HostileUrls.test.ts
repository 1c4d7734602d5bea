import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Diagnostics from "node:diagnostics_channel"
import { layerUndici } from "../../../src/capabilities/OutboundHttp/Undici.ts"
import { parseAllowList } from "../../../src/capabilities/OutboundHttp/AddressRules.ts"
import * as Either from "effect/Either"
import { OutboundHttpError } from "../../../src/capabilities/OutboundHttp.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { layerReaders, serveSite } from "../../readers/Site.ts"
import * as Fixtures from "../../Fixtures.ts"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { addSource, layerIngest, sync } from "./IngestHarness.ts"

/** Names of the outside world, as an attacker's DNS answers them. */
const names: Readonly<Record<string, ReadonlyArray<string>>> = {
  "private.example": ["10.1.2.3"],
  "loopback.example": ["127.0.0.1"],
  "loopback6.example": ["::1"],
  "mixed.example": ["93.184.216.34", "192.168.0.1"],
  "mapped.example": ["::ffff:127.0.0.1"],
  "nat64.example": ["64:ff9b::7f00:1"],
  "zone.example": ["fe80::1%eth0"],
  "metadata.google.internal": ["169.254.169.254"],
  "instance-data.ec2.internal": ["169.254.169.254"],
  localhost: ["127.0.0.1", "::1"]
}
const resolver = (name: string) => {
  const found = names[name]
  return found === undefined
    ? Effect.fail(
        new OutboundHttpError({ reason: "Unresolved", message: `The host ${name} does not exist.` })
      )
    : Effect.succeed(found)
}

const refused = /^fetch_refused: Refused to fetch .+: .+ (?:is|leads to) .+\. Add it to SPOKE_FETCH_ALLOW/
const invalid = /^(?:fetch_invalid_url: |invalid_config: )/

/** Each with what the source's `lastError` says. */
const hostile: ReadonlyArray<readonly [string, RegExp]> = [
  ...[
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.255.255.254/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://0177.0.0.0x1/",
    "http://127.0.0.1./",
    "http://%31%32%37.0.0.1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://127．0．0．1/",
    "http:127.0.0.1",
    "http:\\\\127.0.0.1\\",
    "http:////127.0.0.1/",
    " http://127.0.0.1/ ",
    "ht\ntp://127.0.0.1/",
    "HTTPS://127.0.0.1/",
    "http://127.0.0.1:6379/",
    "http://127.0.0.1:22/",
    "http://0/",
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://167772161/",
    "http://012.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/admin",
    "http://3232235777/",
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://198.18.0.1/",
    "http://198.19.255.1/",
    "http://192.0.0.170/",
    "http://192.0.2.5/",
    "http://203.0.113.5/",
    "http://224.0.0.251/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.170.2/v2/credentials",
    "http://100.100.100.200/latest/",
    "http://168.63.129.16/machine",
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]:8080/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:0:7f00:1]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[64:ff9b::10.0.0.1]/",
    "http://[64:ff9b:1::8.8.8.8]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "http://[2001:db8::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/latest/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[100::1]/",
    "http://[2a00::5efe:10.0.0.1]/",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://private.example/",
    "http://private.example./",
    "http://loopback.example:8080/",
    "http://loopback6.example/",
    "http://mixed.example/",
    "http://mapped.example/",
    "http://nat64.example/",
    "http://zone.example/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://instance-data.ec2.internal/"
  ].map((url) => [url, refused] as const),
  ...[
    "http://user@127.0.0.1/",
    "http://public.example@127.0.0.1/",
    "http://127.0.0.1@private.example/",
    "http://:s3cret@private.example/",
    "http://[fe80::1%25eth0]/",
    "http://256.256.256.256/",
    "http://127.0.0.1:99999/",
    "http://private.example../",
    "file:///etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:11211/",
    "unix:///var/run/docker.sock",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "blob:http://127.0.0.1/1",
    "ws://127.0.0.1/",
    "//127.0.0.1/",
    "/etc/passwd"
  ].map((url) => [url, invalid] as const)
]

const closed = Layer.merge(layerReaders, layerUndici({ allow: [], resolver }))

/** Runs `body`, and says which hosts a connection was begun to meanwhile. */
const connecting = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const hosts: Array<string> = []
      const listen = (message: unknown) => void hosts.push(JSON.stringify(message).slice(0, 200))
      Diagnostics.subscribe("undici:client:beforeConnect", listen)
      return { hosts, listen }
    }),
    ({ hosts }) => Effect.as(body, hosts),
    ({ listen }) => Effect.sync(() => Diagnostics.unsubscribe("undici:client:beforeConnect", listen))
  )

const lastError = (type: "URL" | "SITEMAP" | "FILE", config: unknown) =>
  Effect.gen(function* () {
    const scope = yield* Fixtures.agent()
    const source = yield* addSource(scope, type, config)
    yield* sync(scope, source)
    const sources = yield* SourceStore
    const found = yield* sources.find(scope, source)
    return { status: found?.status, error: found?.lastError ?? "" }
  })

layer(TestDatabase, { timeout: "60 seconds", excludeTestServices: true })(
  "A source at a hostile address",
  (it) => {
    it.scoped(
      `is refused with a clear lastError, and nothing is connected to: ${hostile.length} addresses as each type`,
      () =>
        Effect.gen(function* () {
          yield* reset
          const wrong: Array<string> = []
          const hosts = yield* connecting(
            Effect.forEach(hostile, ([url, expected], at) =>
              Effect.gen(function* () {
                const kinds = [
                  ["URL", { url, maxDepth: 1 }],
                  ["SITEMAP", { sitemapUrl: url }],
                  ["FILE", { fileUrl: url }]
                ] as const
                // Every address as a page, and each as one of the other two.
                for (const [type, config] of [kinds[0], kinds[1 + (at % 2)] ?? kinds[1]]) {
                  const { status, error } = yield* lastError(type, config)
                  if (status !== "FAILED" || !expected.test(error))
                    wrong.push(`${type} ${url}: ${status} ${error}`)
                  if (/10\.1\.2\.3|s3cret/.test(error)) wrong.push(`${url} leaks: ${error}`)
                }
              })
            )
          )
          expect(wrong).toEqual([])
          expect(hosts).toEqual([])
        }).pipe(Effect.provide(Layer.merge(layerIngest, closed))),
      90_000
    )

    it.scoped("behind a redirect is refused too, for every class of addresses", () =>
      Effect.gen(function* () {
        yield* reset
        const targets = [
          "http://127.0.0.2/",
          "http://10.0.0.1/",
          "http://[::1]/",
          "http://169.254.169.254/latest/",
          "http://100.64.0.1/",
          "http://198.18.0.1/",
          "http://[::ffff:10.0.0.1]/",
          "http://[64:ff9b::a00:1]/",
          "http://[2002:a00:1::]/",
          "http://private.example/",
          "http://2130706434/",
          "//10.0.0.1/"
        ]
        const site = yield* serveSite(() => (path) => {
          const location = targets[Number(path.slice(1))]
          return path.length > 1 && location !== undefined
            ? { status: 302, headers: { location } }
            : undefined
        })
        const open = layerUndici({
          allow: Either.getOrThrow(parseAllowList(new URL(site.origin).host)),
          resolver
        })
        const here = Layer.merge(layerIngest, Layer.merge(layerReaders, open))
        for (const [at, target] of targets.entries()) {
          const { error } = yield* lastError("URL", { url: `${site.origin}/${at}` }).pipe(
            Effect.provide(here)
          )
          expect(`${target} ${error}`).toMatch(/ fetch_refused: Refused to fetch/)
        }
      })
    )

    it.scoped(
      "whose name resolves differently after the check is refused, and never connected to",
      () =>
        Effect.gen(function* () {
          yield* reset
          const secret = yield* serveSite(() => () => ({ body: "the secret of the house" }))
          const { port } = new URL(secret.origin)
          // The first answer passes, whatever becomes of it; all later ones lead into the house.
          let asked = 0
          const rebinding = () => Effect.sync(() => (asked++ === 0 ? ["192.0.2.1"] : ["127.0.0.1"]))
          const allow = Either.getOrThrow(parseAllowList("192.0.2.1"))
          const outside = Layer.merge(layerReaders, layerUndici({ allow, resolver: rebinding }))
          const { status, error } = yield* lastError("FILE", {
            fileUrl: `http://rebound.example:${port}/`
          }).pipe(
            Effect.zipRight(lastError("FILE", { fileUrl: `http://rebound.example:${port}/` })),
            Effect.provide(Layer.merge(layerIngest, outside))
          )
          expect(status).toBe("FAILED")
          expect(error).toMatch(refused)
          expect(secret.asked).toEqual([])
        }),
      60_000
    )
  }
)
