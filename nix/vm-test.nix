# A virtual machine with all of services.spoke: requests, a restart, a killed worker, and requests again.
{ self }:
{
  name = "spoke";

  nodes.machine =
    { pkgs, ... }:
    {
      imports = [ self.nixosModules.default ];
      virtualisation.memorySize = 3072;
      environment.systemPackages = [
        pkgs.curl
        pkgs.nodejs_22
        pkgs.redis
        self.packages.${pkgs.stdenv.hostPlatform.system}.default
      ];
      environment.etc."spoke/secret".text = "a secret of this test, thirty-two bytes";
      environment.etc."spoke/operator-token".text = "operator-of-this-test";
      services.spoke = {
        enable = true;
        workers = 2;
        secretFiles = {
          SPOKE_SECRET = "/etc/spoke/secret";
          SPOKE_OPERATOR_TOKEN = "/etc/spoke/operator-token";
        };
        agents = import ./agents.nix;
        agentSecretFiles = {
          SPOKE_TOKEN = "/var/keys/token";
          STOCK_KEY = "/etc/spoke/operator-token";
        };
      };
    };

  testScript = ''
    walk = "SPOKE_URL=http://127.0.0.1:3000 SPOKE_OPERATOR_TOKEN=operator-of-this-test bash ${./walk.sh} /tmp"

    machine.wait_for_unit("spoke.target")
    machine.wait_for_unit("spoke-api.service")
    machine.wait_for_unit("spoke-worker@1.service")
    machine.wait_for_unit("spoke-worker@2.service")

    with subtest("A tenant's agent answers from an upload"):
        machine.succeed(f"{walk} first")

    with subtest("The agents of the system are applied once there is a token, and stay as they are when a test case fails"):
        machine.succeed(
            "mkdir -p /var/keys && curl --fail --silent http://127.0.0.1:3000/api/tokens -b /tmp/jar -H 'x-spoke-csrf: 1'"
            " -H 'content-type: application/json' -d '{\"name\": \"System\", \"scopes\": [\"agents:write\", \"sources:read\"]}'"
            " | grep -o 'spt_[A-Za-z0-9_-]\\{43\\}' > /var/keys/token"
        )
        machine.succeed("systemctl restart spoke-agents.service")
        file = machine.succeed("systemctl cat spoke-agents.service | grep -o '/nix/store/[^ ]*spoke-apply-agents' | xargs grep -o '/nix/store/[^ ]*spoke-agents.json'").strip()
        spoke = "STOCK_KEY=operator-of-this-test SPOKE_URL=http://127.0.0.1:3000 SPOKE_TOKEN=$(cat /var/keys/token) spoke"
        machine.succeed(f"{spoke} plan {file}")
        machine.succeed(
            f"node -e 'const f = JSON.parse(require(\"fs\").readFileSync(\"{file}\", \"utf8\")); f.agents.Desk.retrieval = {{minScore: 1}};"
            " console.log(JSON.stringify(f))' > /tmp/worse.json"
        )
        machine.fail(f"{spoke} apply /tmp/worse.json --yes")
        machine.succeed(f"{spoke} plan {file}")

    with subtest("Chunks are searched by pgvector, and every process is connected to Redis"):
        machine.succeed("su postgres -s /bin/sh -c \"psql -d spoke -tAc 'select count(*) from vector_profiles'\" | grep -v '^0$'")
        machine.wait_until_succeeds("redis-cli -s /run/redis-spoke/redis.sock pubsub numsub '{spoke}:realtime' | grep -qE '^[1-9]'")

    with subtest("The API is back after a restart"):
        machine.succeed("systemctl restart spoke-api.service")
        machine.succeed(f"{walk} again")

    with subtest("A worker that is killed is started again"):
        before = machine.succeed("systemctl show -p MainPID --value spoke-worker@1.service")
        machine.succeed("systemctl kill -s KILL spoke-worker@1.service")
        machine.wait_until_succeeds(
            "test \"$(systemctl show -p MainPID --value spoke-worker@1.service)\" -gt 0"
            f" && test \"$(systemctl show -p MainPID --value spoke-worker@1.service)\" != {before.strip()}"
        )
        machine.succeed(f"{walk} again")

    with subtest("Nobody else reads the data"):
        machine.fail("su nobody -s /bin/sh -c 'ls /var/lib/spoke'")
  '';
}
