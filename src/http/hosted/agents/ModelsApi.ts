/** The models that agents may use, for the dashboard and for programs. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { success } from "../../Envelope.ts"

export const Models = Schema.Struct({
  /** The model of agents that name none. */
  default: Schema.String,
  /**
   * Names that an agent's `model` may have, as far as the configuration tells them: those of the providers' price
   * lists, the default and the fallbacks. Another name that the provider knows works as well.
   */
  models: Schema.Array(Schema.String)
})

const list = HttpApiEndpoint.get("list", "/models")
  .addSuccess(success(Models))
  .annotate(RequiredRole, "viewer")

const models = <const Id extends string>(id: Id) => HttpApiGroup.make(id).add(list)

export class ModelsApi extends models("models").prefix("/api").middleware(SessionAuth) {}

export class ManagedModelsApi extends managed(models("managedModels"), "agents") {}
