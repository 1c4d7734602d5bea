/** Formats of environment variables. Messages never contain the invalid value. */
import { BlockList, isIP } from "node:net"
import * as path from "node:path"
import * as Duration from "effect/Duration"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { parseAllowList } from "../../capabilities/OutboundHttp/AddressRules.ts"
import { Email, NewPassword } from "../../domain/accounts/Account.ts"
import { urlOf } from "../../domain/Address.ts"
import { type Plans, PlanTable } from "../../domain/billing/Billing.ts"
import { RateLimit } from "../../domain/accounts/RateLimit.ts"
import { PatchRetention } from "../../domain/accounts/Retention.ts"
import { parseRedisAddress } from "./RedisAddress.ts"

export const Value = Schema.Trim.pipe(Schema.minLength(1))

export const parsed = <A>(expected: string, parse: (text: string) => Option.Option<A>) =>
  Schema.transformOrFail(
    Value,
    Schema.declare((_: unknown): _ is A => true),
    {
      strict: true,
      decode: (text, _, ast) =>
        Either.fromOption(parse(text), () => new ParseResult.Type(ast, text, `Expected ${expected}`)),
      encode: (value, _, ast) =>
        ParseResult.fail(new ParseResult.Forbidden(ast, value, "A configuration is only read"))
    }
  )

const decodePart = Option.liftThrowable((part: string) => decodeURIComponent(part))

/** Clients decode the user part of an address, so its percent-encoding must be valid. */
const readUrl = (text: string, protocols: ReadonlyArray<string>): Option.Option<string> =>
  Option.fromNullable(urlOf(text)).pipe(
    Option.filter(({ protocol }) => protocols.includes(protocol)),
    Option.filter((found) => Option.isSome(decodePart(`${found.username}${found.password}`))),
    Option.as(text.replace(/\/+$/, ""))
  )
export const url = (expected: string, ...protocols: ReadonlyArray<string>) =>
  parsed(expected, (text) => readUrl(text, protocols))

/** Without a host between account and path, as libpq takes it, the parameter `host` names the folder of a socket. */
export const postgresUrl = parsed("a postgres:// URL", (text) =>
  Option.as(
    readUrl(text.replace(/@(?=\/)/u, "@localhost"), ["postgres:", "postgresql:"]),
    text.replace(/\/+$/, "")
  )
)
export const httpUrl = url("an http or https URL", "http:", "https:")
/** Paths are added to a base address, so a query or a fragment would swallow them. */
const readBaseUrl = (text: string) =>
  Option.filter(readUrl(text, ["http:", "https:"]), () => !/[?#]/u.test(text))
export const baseUrl = parsed("an http or https URL, without a query and a fragment", readBaseUrl)
export const apiUrl = parsed(
  "an http or https URL that ends in /v1, without a query and a fragment",
  (text) => Option.filter(readBaseUrl(text), (address) => address.endsWith("/v1"))
)
export const redisUrl = parsed("a redis:// or rediss:// URL, with the number of a database or none", (text) =>
  Option.as(parseRedisAddress(text), text)
)
const durationFrom = (minMillis: number, maxMillis: number, expected: string) =>
  parsed(expected, (text) =>
    Option.filter(Duration.decodeUnknown(text), (value) => {
      const millis = Duration.toMillis(value)
      return millis >= minMillis && millis <= maxMillis
    })
  )
/** Time of one timer. A timer of more than 2^31 - 1 milliseconds (24.8 days) never fires. */
export const duration = durationFrom(
  Number.MIN_VALUE,
  Duration.toMillis("1 day"),
  'a duration longer than zero and at most 1 day, like "60 seconds"'
)
/** Interval of periodic work. */
export const interval = durationFrom(
  Duration.toMillis("1 second"),
  Duration.toMillis("3650 days"),
  'a duration of 1 second to 3650 days, like "1 day"'
)

/** A decimal number. NaN for `0x10`, `1e3` and white space. */
const decimalOf = (text: string): number =>
  /^\d{0,15}(?:\.\d{1,15})?$/u.test(text) && text !== "" ? Number(text) : Number.NaN

export const count = (min: number, max: number) =>
  parsed(`a whole number from ${min} to ${max}`, (text) =>
    Option.liftPredicate(decimalOf(text), (value) => Number.isInteger(value) && value >= min && value <= max)
  )
export const secret = parsed("a secret of at least 32 bytes", (text) =>
  Buffer.byteLength(text) < 32 ? Option.none() : Option.some(Redacted.make(text))
)
/** URLs drop `.` and `..` as parts of a path, so they cannot be parts of a key. */
export const bucket = parsed("s3://bucket or s3://bucket/prefix", (text) =>
  Option.fromNullable(
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]*?))?\/*$/u.exec(text)
  ).pipe(
    Option.map(([, name = "", prefix = ""]) => ({ bucket: name, prefix })),
    Option.filter(({ prefix }) => !/(?:^|\/)\.{1,2}(?:\/|$)/u.test(prefix))
  )
)
export const roleName = parsed("the name of a role: small letters, digits and _", (text) =>
  Option.liftPredicate(text, (name) => /^[a-z_][a-z0-9_]{0,62}$/u.test(name))
)
export const email = parsed("an e-mail address", Schema.decodeOption(Email))
export const password = parsed("a password of 8 to 200 characters", Schema.decodeOption(NewPassword))
export const redacted = parsed("a value", (text) => Option.some(Redacted.make(text)))
export const choice = <const L extends ReadonlyArray<string>>(...choices: L) =>
  parsed(`one of ${choices.join(", ")}`, (text) =>
    Option.fromNullable(choices.find((name): name is L[number] => name === text.toLowerCase()))
  )
export const allowList = parsed("a comma-separated list of hosts, host:port, addresses or CIDRs", (text) =>
  Either.getRight(parseAllowList(text))
)
const addProxy = (list: BlockList, entry: string): boolean => {
  const [, address = "", prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/u.exec(entry) ?? []
  const version = isIP(address)
  if (version === 0) return false
  const [family, bits] = version === 6 ? (["ipv6", 128] as const) : (["ipv4", 32] as const)
  const length = Number(prefix ?? bits)
  // Trusting every proxy would let every client choose its address for rate limits.
  if (length < 1 || length > bits) return false
  list.addSubnet(address, length, family)
  return true
}

export const proxyList = parsed("a comma-separated list of addresses or CIDRs", (text) => {
  const list = new BlockList()
  const entries = text.split(",").map((entry) => entry.trim())
  return entries.every((entry) => addProxy(list, entry)) ? Option.some(list) : Option.none()
})
const windowSeconds = (text: string) =>
  Option.map(Duration.decodeUnknown(/^\d/u.test(text) ? text : `1 ${text}`), (window) =>
    Math.round(Duration.toSeconds(window))
  )

/** `60 per minute`, `100 per 10 seconds`, `100/10 seconds`. */
export const rate = parsed(
  'a rate like "60 per minute": 1 to 1000000 requests in a duration of 1 second to 1 day',
  (text) => {
    const [, requests = "", window = ""] = /^(\d+)\s*(?:\/|\bper\b)\s*(\S.*)$/u.exec(text) ?? []
    return Option.flatMap(windowSeconds(window), (seconds) =>
      Schema.decodeOption(RateLimit)({ requests: Number(requests), window: seconds })
    )
  }
)

/** `name=value`, separated by commas, values percent-encoded. */
export const headerList = parsed("name=value, separated by commas", (text) =>
  Option.map(
    Option.all(
      text.split(",").map((pair) =>
        Option.flatMap(
          Option.fromNullable(/^([\w!#$%&'*+.^`|~-]+)\s*=(.*)$/u.exec(pair.trim())),
          Option.liftThrowable(
            ([, name = "", value = ""]) => [name, decodeURIComponent(value.trim())] as const
          )
        )
      )
    ),
    (pairs): Redacted.Redacted<Readonly<Record<string, string>>> => Redacted.make(Object.fromEntries(pairs))
  )
)
export const ratio = parsed("a number from 0 to 1", (text) =>
  Option.liftPredicate(decimalOf(text), (value) => value >= 0 && value <= 1)
)
/** Plan names with their entitlements, in addition to the built-in plan. */
export const plans = parsed(
  "JSON from plan names to publicApi, turns, ingestionJobs, sources and overageEnabled",
  (text) =>
    Option.map(
      Schema.decodeOption(Schema.parseJson(PlanTable))(text),
      (table): Plans => new Map(Object.entries(table))
    )
)

export const retention = parsed(
  'JSON from kinds of data to days from 1 to 3650, like {"runs": 90}',
  Schema.decodeOption(Schema.parseJson(PatchRetention), { onExcessProperty: "error" })
)

/** Problems by variable. */
export const problemsIn = (error: ParseResult.ParseError) =>
  ParseResult.ArrayFormatter.formatErrorSync(error).map((issue) => ({
    variable: issue.path.join("."),
    message: issue.message.replace(/,? actual [\s\S]*$/u, "")
  }))

/** A wildcard address cannot be called, so the loopback address is used. */
export const callableHost = (host: string): string => {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1"
  return host.includes(":") ? `[${host}]` : host
}

/** Snapshots of the embedded database; null without an interval. */
export const snapshotsOf = (
  dataDir: string,
  given: {
    readonly SPOKE_SNAPSHOT_INTERVAL?: Duration.Duration | undefined
    readonly SPOKE_SNAPSHOT_DIR?: string | undefined
    readonly SPOKE_SNAPSHOTS_KEPT?: number | undefined
  }
) =>
  given.SPOKE_SNAPSHOT_INTERVAL === undefined
    ? null
    : {
        every: given.SPOKE_SNAPSHOT_INTERVAL,
        folder: path.resolve(given.SPOKE_SNAPSHOT_DIR ?? path.join(dataDir, "snapshots")),
        kept: given.SPOKE_SNAPSHOTS_KEPT ?? 7
      }

/** Null: the data directory. */
export const artifactsOf = (given: {
  readonly SPOKE_ARTIFACTS?: typeof bucket.Type | undefined
  readonly S3_ENDPOINT?: string | undefined
  readonly AWS_REGION?: string | undefined
  readonly AWS_ACCESS_KEY_ID?: Redacted.Redacted | undefined
  readonly AWS_SECRET_ACCESS_KEY?: Redacted.Redacted | undefined
  readonly AWS_SESSION_TOKEN?: Redacted.Redacted | undefined
}) => {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, SPOKE_ARTIFACTS } = given
  if (SPOKE_ARTIFACTS === undefined || accessKeyId === undefined || secretAccessKey === undefined) return null
  return {
    ...SPOKE_ARTIFACTS,
    endpoint: given.S3_ENDPOINT ?? null,
    region: given.AWS_REGION ?? "us-east-1",
    accessKeyId,
    secretAccessKey,
    sessionToken: given.AWS_SESSION_TOKEN ?? null
  }
}

/** An optional variable with its meaning, which the documentation shows. */
export const variable = <A, I>(schema: Schema.Schema<A, I>, meaning: string) =>
  Schema.optionalWith(schema, { exact: true }).annotations({ description: meaning })
