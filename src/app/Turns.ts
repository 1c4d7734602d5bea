/** The layers that run turns and answer conversations. */
import * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import { ChatRequests } from "../usecases/chat/ChatRequests.ts"
import { ChatTurn } from "../usecases/chat/ChatTurn.ts"
import { AgentRuns } from "../usecases/chat/AgentRuns.ts"
import { RunningTurns } from "../usecases/chat/RunningTurns.ts"
import { ChatTools } from "../usecases/chat/tools/Tools.ts"
import { ToolTrials } from "../usecases/chat/tools/ToolTrials.ts"
import { RealtimeAccess } from "../usecases/chat/RealtimeAccess.ts"
import { RealtimeFeed } from "../usecases/conversations/RealtimeFeed.ts"
import { ProcessLease } from "../usecases/chat/ProcessLease.ts"
import { Inbound } from "../usecases/channels/Inbound.ts"
import { InboundFiles } from "../usecases/channels/InboundFiles.ts"
import { Attachments } from "../usecases/chat/widget/Attachments.ts"
import { Handoff } from "../usecases/conversations/Handoff.ts"
import { Takeover } from "../usecases/conversations/Takeover.ts"
import { ConversationControl } from "../usecases/conversations/ConversationControl.ts"
import { HostedTurn } from "../usecases/chat/widget/HostedTurn.ts"
import { InboxView } from "../usecases/conversations/InboxView.ts"
import { AuditTrail } from "../usecases/accounts/AuditTrail.ts"
import { InboxWork } from "../usecases/conversations/InboxWork.ts"
import { WidgetChat } from "../usecases/chat/widget/WidgetChat.ts"
import { Callers } from "../usecases/chat/widget/Callers.ts"
import { VisitorTokens } from "../usecases/chat/widget/VisitorTokens.ts"
import { WidgetSessions } from "../usecases/chat/widget/Sessions.ts"
import * as Outbound from "../usecases/channels/Outbound.ts"
import { TurnSettings } from "../usecases/chat/TurnSettings.ts"
import type { Settings } from "./config/Config.ts"

/** Time that running turns have to settle after the listener has closed. */
const drain = Duration.seconds(30)

export const settings = ({ realtimeUrl, runtimeData, turnTimeout }: Settings) =>
  Layer.succeed(TurnSettings, { timeout: turnTimeout, runtimeData, realtimeUrl, drain })

/** Outgoing channel messages. */
export const outbound = Outbound.layerPorts.pipe(
  Layer.provideMerge(Outbound.Outbound.Default),
  Layer.provide(RealtimeFeed.Default)
)

const turns = ChatRequests.Default.pipe(
  Layer.provideMerge(Layer.mergeAll(ChatTurn.Default, AgentRuns.Default, ToolTrials.Default)),
  Layer.provideMerge(RunningTurns.Default),
  Layer.provideMerge(
    Layer.mergeAll(ChatTools.Default, RealtimeAccess.Default, RealtimeFeed.Default, ProcessLease.Default)
  )
)

/** Takeover and handoff of conversations, and incoming channel messages. */
const answering = Inbound.Default.pipe(
  Layer.provide([InboundFiles.Default, Attachments.Default]),
  Layer.provideMerge(Layer.merge(Handoff.Default, Takeover.Default.pipe(Layer.provide(Attachments.Default)))),
  Layer.provideMerge(ConversationControl.Default),
  Layer.provideMerge(turns),
  Layer.provideMerge(outbound)
)

/** Turns, incoming channel messages, takeover, and the hosted chat with its sessions. */
export const layer = Layer.mergeAll(
  HostedTurn.Default,
  InboxView.Default.pipe(Layer.provide(AuditTrail.Default)),
  InboxWork.Default,
  WidgetChat.Default
).pipe(
  Layer.provideMerge(
    Layer.mergeAll(Attachments.Default, Callers.Default, VisitorTokens.Default, WidgetSessions.Default)
  ),
  Layer.provideMerge(answering)
)
