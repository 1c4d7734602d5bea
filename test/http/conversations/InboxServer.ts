/** Stubs of the inbox's reads, for tests of other routes. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import { MailSubmission } from "../../../src/capabilities/Mailer.ts"
import { OutboundHttp } from "../../../src/capabilities/OutboundHttp.ts"
import * as BuiltIn from "../../../src/channels/BuiltIn.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import { AgentRunStore } from "../../../src/store/chat/AgentRuns.ts"
import { ConversationStore } from "../../../src/store/conversations/Conversations.ts"
import { InboxListStore } from "../../../src/store/conversations/InboxList.ts"
import { InboxWorkStore } from "../../../src/store/conversations/InboxWork.ts"
import { InboxViewStore } from "../../../src/store/conversations/InboxView.ts"
import { WidgetMessageStore } from "../../../src/store/chat/WidgetMessages.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { RealtimeAccess } from "../../../src/usecases/chat/RealtimeAccess.ts"
import { InboxView } from "../../../src/usecases/conversations/InboxView.ts"
import { settings } from "../../usecases/chat/TurnHarness.ts"

/** The built-in channels. None of their providers is called. */
export const channels = BuiltIn.layerHttp({
  appSecret: null,
  graphUrl: "http://127.0.0.1:9",
  slackUrl: "http://127.0.0.1:9",
  telegramUrl: "http://127.0.0.1:9"
}).pipe(Layer.provide([FetchHttpClient.layer, Layer.mock(MailSubmission, {}), Layer.mock(OutboundHttp, {})]))

export const inboxView = InboxView.Default.pipe(
  Layer.provide(Layer.mergeAll(AuditTrail.Default, RealtimeAccess.Default)),
  Layer.provide(
    Layer.mergeAll(
      AgentRunStore.Default,
      ConversationStore.Default,
      DerivedKeys.layer([Redacted.make("the master secret of these tests, 32 bytes")]),
      InboxViewStore.Default,
      InboxListStore.Default,
      InboxWorkStore.Default,
      layerMemory,
      settings(),
      SqlAudit.layerSql,
      WidgetMessageStore.Default
    )
  ),
  Layer.merge(channels)
)
