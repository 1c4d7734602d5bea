/** The OpenAPI 3.1 description of the management interface, derived from its declarations. */
import * as OpenApi from "@effect/platform/OpenApi"
import * as Predicate from "effect/Predicate"
import { pathTemplate, referencedSchemas, toWireSchema, wireSchemas } from "../Description.ts"
import { ManageApi } from "../ManageApi.ts"
import { mapValues } from "../NamedSchemas.ts"
import * as Routes from "../Routes.ts"

const description = [
  "Send an access token as `Authorization: Bearer spt_…`. Each operation names the scope that it requires (`x-scope`), and the",
  "minimum role of the token's creator (`x-role`). Every JSON answer is `{data, meta}` or `{error, meta}`."
].join(" ")

const withAccess = (operation: unknown, route: Routes.Route | undefined) =>
  Predicate.isRecord(operation) && route?.scope !== undefined
    ? { ...operation, "x-scope": `${route.scope.resource}:${route.scope.verb}`, "x-role": route.role }
    : operation

export const manageDescription = () => {
  const routes = new Map(
    Routes.table(ManageApi).map((route) => [
      `${route.method.toLowerCase()} ${pathTemplate(route.path)}`,
      route
    ])
  )
  const { components, info, paths, ...spec } = OpenApi.fromApi(ManageApi)
  const operations = mapValues(toWireSchema(paths), (item, path) =>
    mapValues(item, (operation, method) => withAccess(operation, routes.get(`${method} ${path}`)))
  )
  const schemas = { ...mapValues(toWireSchema(components.schemas), (schema) => schema), ...wireSchemas }
  return {
    ...spec,
    info: { ...info, title: "Spoke management", version: "1", description },
    paths: operations,
    components: {
      schemas: referencedSchemas(schemas, operations),
      securitySchemes: { token: { type: "http", scheme: "bearer" } }
    },
    security: [{ token: [] }]
  }
}
