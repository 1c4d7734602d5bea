/** Agents: their versions, tools, widgets, test cases and experiments. */
import * as Layer from "effect/Layer"
import { AgentVersionStore } from "../../store/agents/AgentVersions.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { ConfiguredPartStore } from "../../store/agents/ConfiguredParts.ts"
import { CorrectionStore } from "../../store/agents/Corrections.ts"
import { ExperimentStore } from "../../store/agents/Experiments.ts"
import { PublishThresholdStore } from "../../store/agents/PublishThresholds.ts"
import { StartStore } from "../../store/agents/Starts.ts"
import { TestCaseStore } from "../../store/agents/TestCases.ts"
import { ToolConnectionStore } from "../../store/agents/ToolConnections.ts"
import { ToolStore } from "../../store/agents/Tools.ts"
import { AgentWidgetStore } from "../../store/agents/Widgets.ts"
import { Keys } from "../../usecases/accounts/Keys.ts"
import { AgentVersions } from "../../usecases/agents/AgentVersions.ts"
import { Agents } from "../../usecases/agents/Agents.ts"
import { Configurations } from "../../usecases/agents/Configurations.ts"
import { ConfiguredChannels } from "../../usecases/agents/ConfiguredChannels.ts"
import { ConfiguredParts } from "../../usecases/agents/ConfiguredParts.ts"
import { Corrections } from "../../usecases/agents/Corrections.ts"
import { CriterionJudge } from "../../usecases/agents/CriterionJudge.ts"
import { ExperimentWork } from "../../usecases/agents/ExperimentWork.ts"
import { Experiments } from "../../usecases/agents/Experiments.ts"
import { PublishGate } from "../../usecases/agents/PublishGate.ts"
import { Starts } from "../../usecases/agents/Starts.ts"
import { TestCases } from "../../usecases/agents/TestCases.ts"
import { ToolConnections } from "../../usecases/agents/ToolConnections.ts"
import { Tools } from "../../usecases/agents/Tools.ts"
import { Widgets } from "../../usecases/agents/Widgets.ts"
import { Replays } from "../../usecases/chat/replay/Replays.ts"
import { Insights } from "../../usecases/conversations/Insights.ts"
import { Sources } from "../../usecases/knowledge/Sources.ts"
import { channels } from "./Channels.ts"

export const stores = Layer.mergeAll(
  AgentStore.Default,
  AgentVersionStore.Default,
  AgentWidgetStore.Default,
  ConfiguredPartStore.Default,
  CorrectionStore.Default,
  ExperimentStore.Default,
  PublishThresholdStore.Default,
  StartStore.Default,
  TestCaseStore.Default,
  ToolConnectionStore.Default,
  ToolStore.Default
)

const widgets = Widgets.Default.pipe(Layer.provide(Keys.Default))

const configurations = Configurations.Default.pipe(
  Layer.provide(ConfiguredParts.Default),
  Layer.provide(ConfiguredChannels.Default),
  Layer.provide([Agents.Default, channels, Sources.Default, TestCases.Default, Tools.Default, widgets])
)

const corrections = Corrections.Default.pipe(
  Layer.provide([Experiments.Default, Insights.Default, Sources.Default, TestCases.Default])
)

export const layer = Layer.mergeAll(
  Agents.Default,
  AgentVersions.Default,
  configurations,
  corrections,
  Experiments.Default,
  ExperimentWork.Default.pipe(Layer.provide([CriterionJudge.Default, Replays.Default])),
  PublishGate.Default,
  Starts.Default,
  TestCases.Default,
  ToolConnections.Default,
  Tools.Default,
  widgets
)
