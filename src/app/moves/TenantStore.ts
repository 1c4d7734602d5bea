/** The services that a command needs to write a tenant into an installation's store. */
import * as Layer from "effect/Layer"
import * as SqlAudit from "../../capabilities/AuditLog/Sql.ts"
import * as QueueTable from "../../capabilities/JobQueue/Table.ts"
import { ProcessLeases } from "../../store/chat/ProcessLeases.ts"
import { ArtifactRows } from "../../store/knowledge/ArtifactRows.ts"
import { AuditTrail } from "../../usecases/accounts/AuditTrail.ts"
import { Artifacts } from "../../usecases/knowledge/Artifacts.ts"
import { TenantMoves } from "../../usecases/operations/moves/TenantMoves.ts"
import type { Settings } from "../config/Config.ts"
import * as Secrets from "../config/Secrets.ts"
import { artifactStore, secretBox } from "../Capabilities.ts"

/** On an open database with its tables. */
export const layer = (settings: Settings) =>
  TenantMoves.Default.pipe(
    Layer.provide(Layer.merge(Artifacts.Default, AuditTrail.Default)),
    Layer.provide(
      Layer.mergeAll(
        ArtifactRows.Default,
        ProcessLeases.Default,
        QueueTable.layerTable,
        SqlAudit.layerSql,
        artifactStore(settings),
        secretBox
      )
    ),
    Layer.provideMerge(Secrets.layer(settings))
  )
