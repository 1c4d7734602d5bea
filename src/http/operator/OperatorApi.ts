/** The operator's part of `http/Api`, whose identifier it bears, so that its handlers fit both. */
import * as HttpApi from "@effect/platform/HttpApi"
import { TenantsApi } from "./TenantsApi.ts"

export const OperatorApi = HttpApi.make("spoke").add(TenantsApi)
