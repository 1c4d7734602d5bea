/** A request to an endpoint, and the same request as a curl command. */
import type { Endpoint } from "./Description.ts"

export interface Request {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** `values` are the parameters by name. Empty ones are omitted, but stay in the path as `{name}`. */
export const requestOf = (
  { method, parameters = [], path, requestBody }: Endpoint,
  base: string,
  key: string,
  values: Readonly<Record<string, string>>,
  body: string
): Request => {
  const givenParameters = (location: string) =>
    parameters.filter((parameter) => parameter.in === location && (values[parameter.name] ?? "") !== "")
  const filledPath = path.replace(/\{(\w+)\}/gu, (placeholder, name: string) => {
    const value = values[name] ?? ""
    return value === "" ? placeholder : encodeURIComponent(value)
  })
  const query = new URLSearchParams(
    Object.fromEntries(givenParameters("query").map(({ name }) => [name, values[name] ?? ""]))
  )
  const takesJson = requestBody?.content["application/json"] !== undefined
  return {
    url: `${base}${filledPath}${query.size > 0 ? `?${query}` : ""}`,
    method,
    headers: {
      ...(key === "" ? {} : { "x-api-key": key }),
      ...(takesJson ? { "content-type": "application/json" } : {}),
      ...Object.fromEntries(givenParameters("header").map(({ name }) => [name, values[name] ?? ""]))
    },
    body: takesJson ? body : null
  }
}

const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The request as a curl command. It reads the key from a variable, so that no shell history has it. */
export const curlOf = ({ body, headers, method, url }: Request): string =>
  [
    `curl ${method === "GET" ? "" : `-X ${method} `}${shellQuoted(url)}`,
    ...Object.entries(headers).map(([name, value]) =>
      name === "x-api-key" ? '-H "x-api-key: $SPOKE_API_KEY"' : `-H ${shellQuoted(`${name}: ${value}`)}`
    ),
    ...(body === null ? [] : [`-d ${shellQuoted(body)}`])
  ].join(" \\\n  ")
