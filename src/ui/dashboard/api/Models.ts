/** The models that agents may use. */
import { queryOptions } from "@tanstack/react-query"
import type { Models } from "../../../http/hosted/agents/ModelsApi.ts"
import { call } from "./Client.ts"

/** They change with the server's settings only. */
const staleTimeMs = 600_000

export const models = queryOptions({
  queryKey: ["models"],
  queryFn: ({ signal }) => call<typeof Models.Encoded>("GET", "/api/models", { signal }),
  staleTime: staleTimeMs
})
