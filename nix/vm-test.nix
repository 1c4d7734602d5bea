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
