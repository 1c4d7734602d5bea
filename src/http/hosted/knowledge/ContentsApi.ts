/**
 * The content of sources, for the dashboard: documents, passages, citing turns, and a search that returns its scores.
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId, ChunkId, DocumentId, SourceId } from "../../../domain/Ids.ts"
import { optional } from "../../../domain/Optional.ts"
import {
  CitingTurn,
  FoundPassage,
  Passage,
  PassageSearch,
  SourceDocument
} from "../../../domain/knowledge/Content.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { trimmed } from "../../../domain/Text.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

const passagePath = Schema.Struct({ id: SourceId, passage: ChunkId })

export const DocumentPage = Schema.Struct({ documents: Schema.Array(SourceDocument), nextCursor })

/** The documents in the order in which they were read. */
const documents = HttpApiEndpoint.get("documents", "/sources/:id/documents")
  .setPath(Schema.Struct({ id: SourceId }))
  .setUrlParams(
    Schema.Struct({
      /** Part of the title or the address. */
      q: optional(trimmed(200)),
      ...pageParams.fields
    })
  )
  .addSuccess(success(DocumentPage))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

export const DocumentContent = Schema.Struct({
  document: SourceDocument,
  passages: Schema.Array(Passage),
  nextCursor
})

/** The document with its passages in reading order. */
const document = HttpApiEndpoint.get("document", "/sources/:id/documents/:document")
  .setPath(Schema.Struct({ id: SourceId, document: DocumentId }))
  .setUrlParams(pageParams)
  .addSuccess(success(DocumentContent))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

export const Citations = Schema.Struct({ turns: Schema.Array(CitingTurn) })

/** The newest turns whose replies cite the passage, newest first. */
const citations = HttpApiEndpoint.get("citations", "/sources/:id/passages/:passage/citations")
  .setPath(passagePath)
  .addSuccess(success(Citations))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "agent")

export const ExcludedPassage = Schema.Struct({ id: ChunkId, excluded: Schema.Boolean })

/** Excludes the passage from search, and every passage of the source with the same text that a later sync reads. */
const exclude = HttpApiEndpoint.post("exclude", "/sources/:id/passages/:passage/exclude")
  .setPath(passagePath)
  .addSuccess(success(ExcludedPassage))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Restores an excluded passage. */
const restore = HttpApiEndpoint.post("restore", "/sources/:id/passages/:passage/restore")
  .setPath(passagePath)
  .addSuccess(success(ExcludedPassage))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

export const FoundPassages = Schema.Struct({
  /** Best first. */
  passages: Schema.Array(FoundPassage),
  /** True when the question was compared by its words alone. */
  byWordsAlone: Schema.Boolean
})

/** Runs a turn's search for a question, without a reply. */
const search = HttpApiEndpoint.post("search", "/agents/:id/passages/search")
  .setPath(Schema.Struct({ id: AgentId }))
  .setPayload(PassageSearch)
  .addSuccess(success(FoundPassages))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "agent")

const contents = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(documents).add(document).add(citations).add(exclude).add(restore).add(search)

export class ContentsApi extends contents("contents").prefix("/api").middleware(SessionAuth) {}

export class ManagedContentsApi extends managed(contents("managedContents"), "sources") {}
