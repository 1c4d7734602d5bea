# services.spoke: the API, workers and migrations as hardened units, optionally with a local PostgreSQL with pgvector and
# a local Redis. Described in docs/nix.md.
{ self }:
{
  config,
  lib,
  pkgs,
  ...
}:
let
  cfg = config.services.spoke;

  # Values of `settings` are in the Nix store, which every user of the machine can read.
  secrets = [
    "AWS_ACCESS_KEY_ID"
    "AWS_SECRET_ACCESS_KEY"
    "AWS_SESSION_TOKEN"
    "BILLING_WEBHOOK_SECRET"
    "CHANNEL_APP_SECRET"
    "CHANNEL_VERIFY_TOKEN"
    "OPENAI_API_KEY"
    "OTEL_EXPORTER_OTLP_HEADERS"
    "SMTP_URL"
    "SPOKE_ADMIN_PASSWORD"
    "SPOKE_GROUNDING_API_KEY"
    "SPOKE_OPERATOR_TOKEN"
    "SPOKE_RERANK_API_KEY"
    "SPOKE_SECRET"
    "SPOKE_SECRET_PREVIOUS"
  ];
  # Addresses that may be in `settings`, unless a password is part of them.
  addresses = [
    "DATABASE_URL"
    "SPOKE_DATABASE_DIRECT_URL"
    "REDIS_URL"
  ];
  hasPassword = address: builtins.match ".*://[^/@]*:[^/@]+@.*" address != null;
  exposed =
    builtins.filter (name: cfg.settings ? ${name}) secrets
    ++ builtins.filter (name: hasPassword (cfg.settings.${name} or "")) addresses;
  given = name: cfg.settings ? ${name} || cfg.secretFiles ? ${name} || cfg.environmentFile != null;

  # Every credential is a variable of the same name.
  start = pkgs.writeShellScript "spoke-start" ''
    set -eu
    for file in "''${CREDENTIALS_DIRECTORY:-/nonexistent}"/*; do
      if [ -f "$file" ]; then export "''${file##*/}=$(<"$file")"; fi
    done
    exec ${lib.getExe cfg.package} "$@"
  '';

  # The first argument is the number of the worker.
  workerStart = pkgs.writeShellScript "spoke-worker-start" ''
    set -eu
    export SPOKE_HEALTH_PORT=$((${toString cfg.workerHealthPort} + $1 - 1))
    shift
    exec ${start} "$@"
  '';

  agentsFile = pkgs.writeText "spoke-agents.json" (builtins.toJSON { inherit (cfg) agents; });

  # Secrets that the file of agents would bring into the store: they are named by a variable, or by a path that is a string.
  isReference =
    secret:
    builtins.isAttrs secret && (secret ? env || (secret ? file && builtins.isString secret.file));
  secretsOf =
    agent:
    builtins.concatLists (
      lib.mapAttrsToList (_: tool: lib.optional ((tool.auth or { }) ? secret) tool.auth.secret) (
        agent.remoteTools or { }
      )
      ++ lib.mapAttrsToList (
        _: channel:
        lib.optional (channel ? accessToken) channel.accessToken
        ++ lib.mapAttrsToList (_: secret: secret) (channel.secrets or { })
      ) (agent.channels or { })
    );
  spoken = builtins.filter (secret: !(isReference secret)) (
    builtins.concatLists (lib.mapAttrsToList (_: secretsOf) cfg.agents)
  );

  # Applied in one transaction: where it fails, what was there goes on.
  applyAgents = pkgs.writeShellScript "spoke-apply-agents" ''
    set -eu
    attempt=0
    until ${start} pull --agents-only >/dev/null 2>&1 || [ "$attempt" = 60 ]; do
      attempt=$((attempt + 1))
      sleep 1
    done
    exec ${start} apply ${agentsFile} --yes --wait
  '';

  # \gexec runs the statement that the query before it returns.
  databaseSetup = pkgs.writeText "spoke-database.sql" ''
    CREATE EXTENSION IF NOT EXISTS vector;
    SELECT 'CREATE ROLE spoke_tenant NOLOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'spoke_tenant') \gexec
    GRANT spoke_tenant TO spoke;
  '';

  extension = lib.optional cfg.database.createLocally "spoke-extension.service";
  # `wants`, not `requires`: the service tolerates restarts of its stores, and migrates itself if this unit has not.
  first =
    extension
    ++ lib.optional cfg.redis.createLocally "redis-spoke.service"
    ++ lib.optional cfg.migrate "spoke-migrate.service";

  environment = {
    HOST = cfg.host;
    PORT = toString cfg.port;
    SPOKE_DATA_DIR = "/var/lib/spoke";
    LOG_FORMAT = "json";
  }
  // lib.optionalAttrs cfg.database.createLocally {
    DATABASE_URL = "postgres:///spoke?host=/run/postgresql&user=spoke";
    SPOKE_TENANT_ROLE = "spoke_tenant";
  }
  // lib.optionalAttrs cfg.redis.createLocally {
    REDIS_URL = "redis://localhost?path=${config.services.redis.servers.spoke.unixSocket}";
  }
  // cfg.settings;

  # A wildcard address cannot be called, so the loopback address is used.
  callableHost =
    if environment.HOST == "0.0.0.0" || environment.HOST == "::" then
      "127.0.0.1"
    else if lib.hasInfix ":" environment.HOST then
      "[${environment.HOST}]"
    else
      environment.HOST;

  service = {
    User = "spoke";
    Group = "spoke";
    SupplementaryGroups = lib.optionals cfg.redis.createLocally [ "redis-spoke" ];
    StateDirectory = "spoke";
    StateDirectoryMode = "0700";
    WorkingDirectory = "/var/lib/spoke";
    UMask = "0077";
    LoadCredential = lib.mapAttrsToList (name: file: "${name}:${file}") cfg.secretFiles;
    EnvironmentFile = lib.optional (cfg.environmentFile != null) cfg.environmentFile;

    # No MemoryDenyWriteExecute: V8 writes the code that it runs.
    AmbientCapabilities = "";
    CapabilityBoundingSet = "";
    DevicePolicy = "closed";
    LockPersonality = true;
    NoNewPrivileges = true;
    PrivateDevices = true;
    PrivateTmp = true;
    PrivateUsers = true;
    ProtectClock = true;
    ProtectControlGroups = true;
    ProtectHome = true;
    ProtectHostname = true;
    ProtectKernelLogs = true;
    ProtectKernelModules = true;
    ProtectKernelTunables = true;
    ProtectProc = "invisible";
    ProtectSystem = "strict";
    RemoveIPC = true;
    RestrictAddressFamilies = [ "AF_UNIX AF_INET AF_INET6" ];
    RestrictNamespaces = true;
    RestrictRealtime = true;
    RestrictSUIDSGID = true;
    SystemCallArchitectures = "native";
    SystemCallFilter = [
      "@system-service"
      "~@privileged"
    ];
    SystemCallErrorNumber = "EPERM";
  };

  # Longer than a drain takes: SPOKE_DRAIN_DELAY and 65 seconds.
  serving = service // {
    Restart = "always";
    RestartSec = 2;
    TimeoutStopSec = 75;
  };
in
{
  options.services.spoke = {
    enable = lib.mkEnableOption "Spoke, AI agents that answer from a knowledge base";

    package = lib.mkOption {
      type = lib.types.package;
      default = self.packages.${pkgs.stdenv.hostPlatform.system}.default;
      defaultText = lib.literalExpression "the package of this flake";
      description = "The package to run.";
    };

    host = lib.mkOption {
      type = lib.types.str;
      default = "127.0.0.1";
      description = "Listen address (HOST).";
    };

    port = lib.mkOption {
      type = lib.types.port;
      default = 3000;
      description = "Listen port (PORT).";
    };

    openFirewall = lib.mkOption {
      type = lib.types.bool;
      default = false;
      description = "Whether to open the port in the firewall.";
    };

    api = lib.mkOption {
      type = lib.types.bool;
      default = true;
      description = "Whether this machine answers requests.";
    };

    workers = lib.mkOption {
      type = lib.types.ints.unsigned;
      default = 1;
      description = "How many worker processes do background work on this machine.";
    };

    workerHealthPort = lib.mkOption {
      type = lib.types.nullOr lib.types.port;
      default = null;
      example = 9464;
      description = "Where the first worker tells its health and metrics (SPOKE_HEALTH_PORT); each further one a port higher. By default nowhere.";
    };

    migrate = lib.mkOption {
      type = lib.types.bool;
      default = true;
      description = "Whether the database is brought to the newest version before anything starts on this machine.";
    };

    settings = lib.mkOption {
      type = lib.types.attrsOf lib.types.str;
      default = { };
      example = {
        APP_URL = "https://spoke.example.org";
      };
      description = "Environment variables of Spoke, see its README. Secrets do not belong here.";
    };

    secretFiles = lib.mkOption {
      type = lib.types.attrsOf lib.types.str;
      default = { };
      example = {
        SPOKE_SECRET = "/run/keys/spoke-secret";
      };
      description = "Files whose contents become the environment variables they are named by. Only root has to be able to read them.";
    };

    environmentFile = lib.mkOption {
      type = lib.types.nullOr lib.types.str;
      default = null;
      description = "A file of lines `NAME=value`, for those who keep their secrets in one.";
    };

    agents = lib.mkOption {
      type = lib.types.attrsOf lib.types.anything;
      default = { };
      example = lib.literalExpression ''
        {
          Help = {
            instructions.file = ./prompt.md;
            sources.Handbook = {
              type = "TEXT";
              config.text.file = ./handbook.md;
            };
          };
        }
      '';
      description = "Agents by name, as in a file of `spoke apply`, which is applied whenever it changes. Files that are paths come into the store; secrets are named by reference.";
    };

    agentSecretFiles = lib.mkOption {
      type = lib.types.attrsOf lib.types.str;
      default = { };
      example = {
        SPOKE_TOKEN = "/run/keys/spoke-token";
        STOCK_KEY = "/run/keys/stock";
      };
      description = "Files whose contents become the variables that `agents` names, and SPOKE_TOKEN, the access token to apply them with.";
    };

    database.createLocally = lib.mkOption {
      type = lib.types.bool;
      default = true;
      description = "Whether to run PostgreSQL with pgvector on this machine. Else set DATABASE_URL.";
    };

    redis.createLocally = lib.mkOption {
      type = lib.types.bool;
      default = true;
      description = "Whether to run a Redis of Spoke's own on this machine. Else set REDIS_URL, or do without.";
    };
  };

  config = lib.mkIf cfg.enable (
    lib.mkMerge [
      {
        assertions = [
          {
            assertion = exposed == [ ];
            message = "services.spoke.settings is readable by everybody: move ${lib.concatStringsSep ", " exposed} to services.spoke.secretFiles.";
          }
          {
            assertion = given "SPOKE_SECRET";
            message = "services.spoke needs secretFiles.SPOKE_SECRET, a file of at least 32 random bytes as text, or an environmentFile that sets it.";
          }
          {
            assertion = spoken == [ ];
            message = "services.spoke.agents is readable by everybody: name secrets by reference, { env = \"NAME\"; } or { file = \"/run/keys/name\"; }.";
          }
          {
            assertion = cfg.agents == { } || (cfg.api && cfg.agentSecretFiles ? SPOKE_TOKEN);
            message = "services.spoke.agents needs the API on this machine, and agentSecretFiles.SPOKE_TOKEN, a file with an access token.";
          }
          {
            assertion = cfg.database.createLocally || given "DATABASE_URL";
            message = "services.spoke needs DATABASE_URL when database.createLocally is off.";
          }
        ];

        users.users.spoke = {
          isSystemUser = true;
          group = "spoke";
        };
        users.groups.spoke = { };

        networking.firewall.allowedTCPPorts = lib.optional (cfg.openFirewall && cfg.api) cfg.port;

        systemd.targets.spoke = {
          description = "Spoke";
          wantedBy = [ "multi-user.target" ];
          wants =
            lib.optional cfg.api "spoke-api.service"
            ++ lib.optional (cfg.agents != { }) "spoke-agents.service"
            ++ map (n: "spoke-worker@${toString n}.service") (lib.range 1 cfg.workers);
        };
      }

      (lib.mkIf cfg.migrate {
        systemd.services.spoke-migrate = {
          description = "Spoke's database, brought to the newest version";
          after = [ "network-online.target" ] ++ extension;
          wants = [ "network-online.target" ];
          requires = extension;
          inherit environment;
          serviceConfig = service // {
            Type = "oneshot";
            RemainAfterExit = true;
            ExecStart = "${start} migrate";
            TimeoutStartSec = "infinity";
          };
        };
      })

      (lib.mkIf cfg.api {
        systemd.services.spoke-api = {
          description = "Spoke's API, dashboard and widget";
          partOf = [ "spoke.target" ];
          after = [ "network-online.target" ] ++ first;
          wants = [ "network-online.target" ] ++ first;
          inherit environment;
          serviceConfig = serving // {
            ExecStart = "${start} serve --role api";
          };
        };
      })

      (lib.mkIf (cfg.agents != { }) {
        # For `spoke plan`, before it is switched to.
        system.build.spokeAgents = agentsFile;

        systemd.services.spoke-agents = {
          description = "Spoke's agents, as the system says them";
          after = [ "spoke-api.service" ];
          wants = [ "spoke-api.service" ];
          environment.SPOKE_URL = "http://${callableHost}:${environment.PORT}";
          serviceConfig = service // {
            Type = "oneshot";
            RemainAfterExit = true;
            LoadCredential = lib.mapAttrsToList (name: file: "${name}:${file}") cfg.agentSecretFiles;
            ExecStart = applyAgents;
            # Test cases are asked, and sources are read.
            TimeoutStartSec = "infinity";
          };
        };
      })

      (lib.mkIf (cfg.workers > 0) {
        systemd.services."spoke-worker@" = {
          description = "Spoke's worker %i";
          partOf = [ "spoke.target" ];
          after = [ "network-online.target" ] ++ first;
          wants = [ "network-online.target" ] ++ first;
          inherit environment;
          serviceConfig = serving // {
            ExecStart =
              if cfg.workerHealthPort == null then
                "${start} serve --role worker"
              else
                # The instance is a number, and systemd cannot add.
                "${workerStart} %i serve --role worker";
          };
        };
      })

      (lib.mkIf cfg.database.createLocally {
        services.postgresql = {
          enable = true;
          extensions = extensions: [ extensions.pgvector ];
          ensureDatabases = [ "spoke" ];
          ensureUsers = [
            {
              name = "spoke";
              ensureDBOwnership = true;
            }
          ];
        };

        # Only a superuser may create them, and the service is not one.
        systemd.services.spoke-extension = {
          description = "pgvector and the role of tenants in Spoke's database";
          after = [ "postgresql.target" ];
          requires = [ "postgresql.target" ];
          serviceConfig = {
            Type = "oneshot";
            RemainAfterExit = true;
            User = "postgres";
            ExecStart = "${config.services.postgresql.package}/bin/psql -X -v ON_ERROR_STOP=1 -d spoke -f ${databaseSetup}";
          };
        };
      })

      (lib.mkIf cfg.redis.createLocally {
        services.redis.servers.spoke = {
          enable = true;
          port = 0;
          unixSocketPerm = 660;
        };
      })
    ]
  );
}
