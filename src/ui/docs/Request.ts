/** A request of the reference: its address, and the same request for a shell. */
import type { Placed } from "./Description.ts"

export interface Request {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** `values`: the parameters by name; empty ones are left out. A path without a value keeps its name in braces. */
export const requestOf = (
  { method, parameters = [], path, requestBody }: Placed,
  base: string,
  key: string,
  values: Readonly<Record<string, string>>,
  body: string
): Request => {
  const given = (place: string) =>
    parameters.filter((parameter) => parameter.in === place && (values[parameter.name] ?? "") !== "")
  const filled = path.replace(/\{(\w+)\}/gu, (whole, name: string) => {
    const value = values[name] ?? ""
    return value === "" ? whole : encodeURIComponent(value)
  })
  const query = new URLSearchParams(
    Object.fromEntries(given("query").map(({ name }) => [name, values[name] ?? ""]))
  )
  const takesJson = requestBody?.content["application/json"] !== undefined
  return {
    url: `${base}${filled}${query.size > 0 ? `?${query}` : ""}`,
    method,
    headers: {
      ...(key === "" ? {} : { "x-api-key": key }),
      ...(takesJson ? { "content-type": "application/json" } : {}),
      ...Object.fromEntries(given("header").map(({ name }) => [name, values[name] ?? ""]))
    },
    body: takesJson ? body : null
  }
}

const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** For a shell. The key is read from a variable, so that it is in no history. */
export const curlOf = ({ body, headers, method, url }: Request): string =>
  [
    `curl ${method === "GET" ? "" : `-X ${method} `}${shellQuoted(url)}`,
    ...Object.entries(headers).map(([name, value]) =>
      name === "x-api-key" ? '-H "x-api-key: $SPOKE_API_KEY"' : `-H ${shellQuoted(`${name}: ${value}`)}`
    ),
    ...(body === null ? [] : [`-d ${shellQuoted(body)}`])
  ].join(" \\\n  ")
