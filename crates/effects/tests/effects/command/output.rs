//! The output of a command: any bytes, any amount, within bounds, while it runs and after.

use super::{World, until, with_and_without_sandbox};
use abide_effects::limits::{OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES};
use abide_effects::process::read_output_files;

with_and_without_sandbox!(
    any_bytes,
    a_line_of_a_megabyte,
    an_endless_writer_is_bounded_and_stoppable,
    the_middle_is_counted,
    files_hold_what_memory_holds,
    a_full_disk_harms_nobody,
    read_while_it_runs,
);

async fn any_bytes(world: World) {
    let (_, output) = world.run("printf '\\377\\000\\200\\n\\001'; head -c 1000 /dev/urandom > sent; cat sent").await;
    let sent = std::fs::read(world.path("root/sent")).unwrap();
    assert_eq!(output.stdout.whole().unwrap(), [b"\xff\x00\x80\n\x01".as_slice(), &sent].concat());
}

async fn a_line_of_a_megabyte(world: World) {
    let process = world.start("head -c 1000000 /dev/zero | tr '\\0' a").await;
    process.wait().await;
    let kept = process.output().combined;
    assert_eq!((kept.total, kept.dropped), (1_000_000, 0));
    assert!(kept.whole().unwrap().iter().all(|byte| *byte == b'a'));
}

async fn an_endless_writer_is_bounded_and_stoppable(world: World) {
    let process = world.start("yes").await;
    process.keep_output_in(&world.path("kept")).unwrap();
    until("it wrote a lot", || process.output().combined.total > 300 << 20).await;
    process.stop(false);
    assert!(process.wait().await.stopped);
    let kept = process.output().combined;
    assert_eq!((kept.head.len(), kept.tail.len()), (OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES));
    let sizes = std::fs::read_dir(world.path("kept")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    assert!(sizes.sum::<u64>() < (OUTPUT_HEAD_BYTES + OUTPUT_TAIL_BYTES + 1_000) as u64);
}

async fn the_middle_is_counted(world: World) {
    let process = world.start("head -c 2000000 /dev/zero | tr '\\0' a; echo end").await;
    process.wait().await;
    let dropped = 2_000_004 - (OUTPUT_HEAD_BYTES + OUTPUT_TAIL_BYTES) as u64;
    assert_eq!(process.output().combined.dropped, dropped);
    let chunk = process.read(OUTPUT_HEAD_BYTES as u64 + 10, 5);
    assert_eq!((chunk.skipped, chunk.bytes.as_slice(), chunk.total), (dropped - 10, b"aaaaa".as_slice(), 2_000_004));
    assert_eq!(chunk.next_offset, OUTPUT_HEAD_BYTES as u64 + dropped + 5);
    assert_eq!(process.read(2_000_000, 100).bytes, b"end\n");
    assert_eq!(process.read(9_000_000, 100).next_offset, 2_000_004);
}

async fn files_hold_what_memory_holds(world: World) {
    for command in ["true", "echo little", "seq 400000", "seq 100000"] {
        let process = world.start(command).await;
        process.keep_output_in(&world.path("kept")).unwrap();
        process.wait().await;
        for offset in [0, 3, 600_000, 1_500_000] {
            let of_files = read_output_files(&world.path("kept"), offset, 1_000_000).unwrap();
            assert_eq!(of_files, process.read(offset, 1_000_000), "{command} {offset}");
        }
        process.keep_output_in(&world.path("late")).unwrap();
        assert_eq!(read_output_files(&world.path("late"), 0, 100).unwrap(), process.read(0, 100));
    }
}

async fn a_full_disk_harms_nobody(world: World) {
    std::fs::create_dir(world.path("kept")).unwrap();
    std::os::unix::fs::symlink("/dev/full", world.path("kept/head")).unwrap();
    let mut launch = world.launch("seq 1000");
    launch.output = Some(world.path("kept"));
    let process = world.processes.start(launch).await.unwrap();
    let ended = process.wait().await;
    assert_eq!(ended.exit_code, Some(0));
    assert!(ended.evidence.iter().any(|one| one.starts_with("output_not_kept ")), "{:?}", ended.evidence);
    assert!(process.output().combined.whole().unwrap().ends_with(b"999\n1000\n"));
}

async fn read_while_it_runs(world: World) {
    let mut launch = world.launch("echo one; read go; echo two; sleep 1000");
    (launch.accepts_input, launch.output) = (true, Some(world.path("kept")));
    let process = world.processes.start(launch).await.unwrap();
    until("the first line", || process.read(0, 100).bytes == b"one\n").await;
    assert_eq!(read_output_files(&world.path("kept"), 0, 100).unwrap().bytes, b"one\n");
    process.write(b"\n").await.unwrap();
    until("the second line", || read_output_files(&world.path("kept"), 4, 100).unwrap().bytes == b"two\n").await;
    process.stop(true);
    process.wait().await;
}
