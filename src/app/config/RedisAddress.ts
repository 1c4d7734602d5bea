/** The address of Redis: one server, or the first nodes of a cluster. */
import * as Option from "effect/Option"
import { urlOf } from "../../domain/Address.ts"

export interface RedisAddress {
  /** True when keys are distributed over several servers. The given nodes report all others. */
  readonly cluster: boolean
  readonly tls: boolean
  readonly nodes: ReadonlyArray<{ readonly host: string; readonly port: number }>
  readonly username: string | undefined
  readonly password: string | undefined
}

/** Scheme, credentials, hosts and the rest. URL parsers accept only one host, so the address is split by a pattern. */
const urlPattern = /^(rediss?:\/\/)([^@/?#]*@)?([^@/?#]+)([/?#].*)?$/iu

/** None for invalid percent-encoding. */
const accountOf = Option.liftThrowable(({ password, username }: URL) => {
  const nonEmpty = (value: string) => (value === "" ? undefined : decodeURIComponent(value))
  return { username: nonEmpty(username), password: nonEmpty(password) }
})

/** `redis://host`, `redis://one,two,three` or `redis://one?cluster=true`; `rediss` for TLS. */
export const parseRedisAddress = (text: string): Option.Option<RedisAddress> => {
  const [, scheme = "", credentials = "", hosts = "", rest = ""] = urlPattern.exec(text) ?? []
  const urls = hosts.split(",").map((host) => urlOf(`${scheme}${credentials}${host}${rest}`))
  const [first] = urls
  if (!first) return Option.none()
  const nodes = urls.flatMap((url) =>
    url && url.hostname !== ""
      ? [{ host: url.hostname.replace(/^\[|\]$/gu, ""), port: Number(url.port === "" ? 6_379 : url.port) }]
      : []
  )
  const clusterParameter = first.searchParams.get("cluster")
  const cluster = nodes.length > 1 || clusterParameter === "true"
  const databases = [first.pathname.slice(1) || "0", first.searchParams.get("db") ?? "0"]
  // A cluster has only database 0.
  const number = cluster ? /^0$/u : /^\d{1,9}$/u
  if (
    nodes.length !== urls.length ||
    !databases.every((database) => number.test(database)) ||
    (clusterParameter !== null && clusterParameter !== "true")
  )
    return Option.none()
  return Option.map(accountOf(first), (account) => ({
    cluster,
    tls: first.protocol === "rediss:",
    nodes,
    ...account
  }))
}
