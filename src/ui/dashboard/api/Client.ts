/** Calls of the dashboard routes (contract 3): same origin, session cookie, the envelope taken off. */

/** What the service answered instead of success; `code` is one of the documented ones. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly details: Readonly<Record<string, unknown>>
  readonly requestId: string

  constructor(
    status: number,
    code: string,
    message: string,
    details: Readonly<Record<string, unknown>>,
    requestId: string
  ) {
    super(message)
    this.name = "ApiError"
    this.status = status
    this.code = code
    this.details = details
    this.requestId = requestId
  }
}

interface Failure {
  readonly error?: {
    readonly code?: string
    readonly message?: string
    readonly details?: Record<string, unknown>
  }
  readonly meta?: { readonly requestId?: string }
}

type Query = Readonly<Record<string, string | number | boolean | null | undefined>>

const address = (path: string, query: Query | undefined) => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") parameters.set(name, String(value))
  }
  const text = parameters.toString()
  return text === "" ? path : `${path}?${text}`
}

/** The failure that a response which is not 2xx stands for. */
export const failureOf = async (response: Response): Promise<ApiError> => {
  const body: Failure = await response.json().catch(() => ({}))
  return new ApiError(
    response.status,
    body.error?.code ?? "INTERNAL_ERROR",
    body.error?.message ?? response.statusText,
    body.error?.details ?? {},
    body.meta?.requestId ?? response.headers.get("x-request-id") ?? ""
  )
}

interface Options {
  readonly query?: Query
  /** Sent as JSON; a `FormData` as it is. */
  readonly body?: unknown
  readonly signal?: AbortSignal
}

/** `data` of the answer. Fails with {@link ApiError}, or with what `fetch` fails with when nothing answers. */
export const call = async <A>(
  method: "GET" | "POST" | "PATCH" | "DELETE",
  path: string,
  { query, body, signal }: Options = {}
): Promise<A> => {
  const form = body instanceof FormData
  const response = await fetch(address(path, query), {
    method,
    credentials: "same-origin",
    ...(signal === undefined ? {} : { signal }),
    ...(body === undefined
      ? {}
      : form
        ? { body }
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } })
  })
  if (!response.ok) throw await failureOf(response)
  const answer: { readonly data: A } = await response.json()
  return answer.data
}

/** The cursor of a list's first page. */
export const firstPage = (): string | null => null
